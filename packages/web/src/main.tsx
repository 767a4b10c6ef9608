import { render } from "preact";
import "./look/page.css";
import { readAbout } from "./data/tapedeck.ts";
import { followLinks } from "./router.ts";
import { Shell } from "./shell.tsx";

followLinks();
// Nobody may be there yet; the view that is shown asks again.
await readAbout().catch(() => {});
render(<Shell />, document.querySelector("#page") ?? document.body);
