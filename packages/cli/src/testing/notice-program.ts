import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export type ShownNotice = readonly string[];

/**
 * Puts a stand-in for notify-send or osascript into a folder, since no desktop is where tests run: it writes its arguments to a file. With
 * `hangs` it never ends.
 */
export function installNoticeProgram(
  folder: string,
  name: "notify-send" | "osascript",
  { hangs = false, exitCode = 0 } = {},
) {
  mkdirSync(folder, { recursive: true });
  const shown = join(folder, `${name}.shown`);
  const hanging = hangs ? "\nexec sleep 600" : "";
  // Each argument ends with a NUL, each call with another one.
  const script = `#!/bin/sh\n{ printf '%s\\0' "$@"; printf '\\0'; } >> "${shown}"\necho noise; echo noise >&2${hanging}\nexit ${exitCode}\n`;
  writeFileSync(join(folder, name), script);
  chmodSync(join(folder, name), 0o755);
  return {
    /** The arguments of each call. */
    shown: (): readonly ShownNotice[] => {
      const text = existsSync(shown) ? readFileSync(shown, "utf8") : "";
      return text
        .split("\0\0")
        .slice(0, -1)
        .map((call) => call.split("\0"));
    },
  };
}
