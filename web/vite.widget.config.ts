import { defineConfig } from "vite";

// The same component for notebooks: a module with a `render` function, as anywidget takes it.
export default defineConfig({
  build: {
    outDir: "../src/regionscope/app/static",
    emptyOutDir: false,
    cssCodeSplit: false,
    lib: { entry: "src/widget.tsx", formats: ["es"], fileName: () => "assets/widget.js", cssFileName: "assets/explorer" },
  },
});
