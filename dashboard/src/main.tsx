import { render } from "preact";
import { App } from "./App";

const root = document.getElementById("app")!;
root.replaceChildren();
render(<App />, root);
