import { dataVersion, type SessionData } from "./data.ts";

/** @throws Error with a sentence for people */
export async function sessionDataIn(text: string): Promise<SessionData> {
  if (!("DecompressionStream" in globalThis))
    throw new Error("This browser is too old for it: use one of 2023 or newer.");
  const data = await decoded(text.trim()).catch(() => {
    throw new Error("The session in this file is cut off or damaged.");
  });
  if (data.version === dataVersion) return data;
  throw new Error(`The session in this file is of version ${data.version}, and its page reads version ${dataVersion}.`);
}

async function decoded(text: string): Promise<SessionData> {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}
