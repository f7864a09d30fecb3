// The page: beside a server, or alone with the answers inside it.

import { render } from "preact";
import { App } from "./App";
import { server, stored } from "./transport";

const answers = document.getElementById("regionscope-answers");
const to = answers ? stored(JSON.parse(answers.textContent ?? "{}").answers) : server;
render(<App to={to} addressed />, document.getElementById("explorer")!);
