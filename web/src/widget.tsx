// The same component in a notebook, as anywidget calls it.

import { render } from "preact";
import { App } from "./App";
import { notebook, type Kernel } from "./transport";

export default {
  render({ model, el }: { model: Kernel; el: HTMLElement }) {
    render(<App to={notebook(model)} addressed={false} />, el);
    return () => render(null, el);
  },
};
