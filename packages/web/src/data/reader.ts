import type { Client } from "@tapedeck/client";
import { tapedeck } from "./tapedeck.ts";

/** The source of the views of a session and of a loop: the gateway, or the file that contains the page. */
export type Reader = Pick<Client, "sessions" | "operations" | "events" | "subscribe" | "state" | "compare">;

let file: Reader | undefined;

export function reader(): Reader {
  return file ?? tapedeck();
}

export function readFile(from: Reader): void {
  file = from;
}

/** Whether there is no gateway to ask. */
export function isFile(): boolean {
  return file !== undefined;
}
