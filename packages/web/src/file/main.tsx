import { render } from "preact";
import "../look/page.css";
import { readFile } from "../data/reader.ts";
import { stopClock } from "../data/tapedeck.ts";
import { sessionPath } from "../model/route.ts";
import { followLinksInFile } from "../router.ts";
import { sessionDataIn } from "./decode.ts";
import { fileReader } from "./file-reader.ts";
import { FileShell } from "./file-shell.tsx";

// The page in a file of `tapedeck export --html`: it shows the session beside it, and makes no requests.

const page = document.querySelector("#page") ?? document.body;
try {
  const data = await sessionDataIn(document.querySelector("#session-data")?.textContent ?? "");
  const { session } = data.session;
  readFile(fileReader(data));
  stopClock(Date.parse(data.exportedAt));
  followLinksInFile({
    home: sessionPath(session),
    has: (route) =>
      (route.view === "session" && route.session === session) ||
      (route.view === "loop" && route.loop.session === session),
  });
  render(<FileShell data={data} />, page);
} catch (error) {
  render(<Unreadable error={error instanceof Error ? error.message : String(error)} />, page);
}

function Unreadable({ error }: { readonly error: string }) {
  return (
    <p class="empty" role="alert">
      {error}
    </p>
  );
}
