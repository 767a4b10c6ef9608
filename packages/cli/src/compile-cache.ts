import { fileURLToPath } from "node:url";

/** Where Node keeps our sources compiled, which halves the time that a command takes to start. */
export const compileCache = fileURLToPath(new URL("../../../node_modules/.cache/tapedeck", import.meta.url));
