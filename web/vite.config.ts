import { defineConfig } from "vite";

// The page: one script and one style sheet, so that `regionscope export --html` can put both into a file.
export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/regionscope/app/static",
    emptyOutDir: true,
    modulePreload: false,
    cssCodeSplit: false,
    rolldownOptions: {
      output: { entryFileNames: "assets/explorer.js", assetFileNames: "assets/explorer[extname]" },
    },
  },
});
