import { signal } from "@preact/signals";
import { type Client, connect, TapedeckError } from "@tapedeck/client";
import { refusalText } from "../model/refusal.ts";

export type ServerInfo = {
  readonly version: string;
  readonly auth: "none" | "tokens";
  readonly time: string;
  /** Absent where the server did not answer. */
  readonly privacy?: { readonly developers: "shown" | "hidden" | "hidden-from-admins" };
  /** Where to begin to sign in by an identity provider; absent without one. */
  readonly signIn?: { readonly title: string; readonly url: string };
  /** The path of the manual; absent where the gateway does not have it. */
  readonly docs?: string;
  readonly token?: {
    readonly name: string;
    readonly workspace: string;
    readonly roles: readonly string[];
    readonly developer?: string;
    /** Other developers are hidden from it: it sees its own recordings, and sums of the team. */
    readonly seesOnlyOwn?: true;
  };
};

export const about = signal<ServerInfo | undefined>(undefined);
/** Since when the gateway is silent; undefined: it is connected, or nothing is read. */
export const lostSince = signal<number | undefined>(undefined);
/** Whether the visitor has to sign in before anything can be read. */
export const mustSignIn = signal(false);
/** The difference between this machine's clock and the gateway's. */
let clockOffset = 0;

/** The gateway's time: ages are right also where a laptop's clock is not. */
export function serverNow(): number {
  return Date.now() + clockOffset;
}

/** Ticks while the page is visible. Times in views are of this moment. */
export const tick = signal(Date.now());
const ticking = setInterval(() => {
  if (!document.hidden) tick.value = serverNow();
}, 250);

/** Stops the views' clock at a moment: nothing shown is still running. */
export function stopClock(at: number): void {
  clearInterval(ticking);
  tick.value = at;
}

let open: Client | undefined;

/** One client, and with it one socket, for the page. */
export function tapedeck(): Client {
  open ??= connect({
    url: location.origin,
    onConnection: (isOpen) => {
      lostSince.value = isOpen ? undefined : (lostSince.value ?? serverNow());
    },
  });
  return open;
}

/** Ends what is being read, as when the visitor is another one. */
function forgetClient(): void {
  open?.close();
  open = undefined;
}

export async function readAbout(): Promise<void> {
  const answer = await fetch("/about");
  // A token or session has ended: the cookie is no longer valid.
  const found: ServerInfo = answer.ok ? await answer.json() : await readAboutAsNobody();
  clockOffset = Date.parse(found.time) - Date.now();
  tick.value = serverNow();
  about.value = found;
  mustSignIn.value = found.auth === "tokens" && found.token === undefined;
}

async function readAboutAsNobody(): Promise<ServerInfo> {
  const answer = await fetch("/about", { credentials: "omit" });
  return answer.ok ? await answer.json() : { version: "", auth: "tokens", time: new Date().toISOString() };
}

/** @throws Error with a sentence for people */
export async function signIn(token: string): Promise<void> {
  const headers = { "content-type": "application/json" };
  const answer = await fetch("/api/v1/sign-in", { method: "POST", headers, body: JSON.stringify({ token }) });
  if (!answer.ok) throw new Error(await messageOf(answer));
  forgetClient();
  await readAbout();
}

export async function signOut(): Promise<void> {
  await fetch("/api/v1/sign-out", { method: "POST" });
  forgetClient();
  await readAbout();
}

async function messageOf(answer: Response): Promise<string> {
  const body = await answer.json().catch(() => undefined);
  return body?.error?.message ?? `the gateway answered ${answer.status}`;
}

/** An error in sentences. One about an expired token leads to the sign-in. */
export function errorText(error: unknown): string {
  if (error instanceof TapedeckError && error.code === "unauthenticated") mustSignIn.value = true;
  return refusalText(error);
}
