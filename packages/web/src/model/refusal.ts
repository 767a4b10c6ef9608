import { TapedeckError } from "@tapedeck/client";

/** Why something could not be shown, and what to do, in sentences for the page's reader. */
export function refusalText(error: unknown): string {
  if (!(error instanceof TapedeckError)) return sentence(error instanceof Error ? error.message : String(error));
  return texts.get(error.code)?.(error) ?? sentence(error.message);
}

const texts: ReadonlyMap<string, (error: TapedeckError) => string> = new Map(
  Object.entries({
    limit_exceeded: ({ retryAfter }) =>
      retryAfter === undefined
        ? "That is too much for one answer. Choose a shorter time, or one developer or project."
        : `Tapedeck is asked too much right now. Try again ${afterText(retryAfter)}.`,
    not_ready: ({ retryAfter }) => `Tapedeck is not ready for this yet. Try again ${afterText(retryAfter)}.`,
    out_of_range: () => "What was recorded then is no longer kept. Choose a later time.",
    before_first: () => "Nothing was recorded there yet at that time. Choose a later one.",
    position_foreign: () => "This link is of another Tapedeck, or of a log that was replaced. Begin from Now.",
    position_future: () => "This link is to a moment that is not recorded here. Begin from Now.",
    unknown_source: ({ message }) => `No source${named(message)} has been recorded. Health lists those that were.`,
    unknown_session: ({ message }) =>
      `There is no session${named(message)} any more, or it was never recorded here. Begin from Now.`,
    ambiguous_source: ({ choices = [] }) => `More than one source has this name. Choose one of ${choices.join(", ")}.`,
    forbidden: ({ message }) => `${sentence(message)} Whoever runs Tapedeck can give you another token.`,
    internal: () => "Something went wrong in Tapedeck itself: its log says what. Try again.",
  }),
);

/** ` "alice/shop"`, as the message names it. */
function named(message: string): string {
  const found = /"[^"]+"/.exec(message)?.[0];
  return found === undefined ? "" : ` ${found}`;
}

function afterText(seconds: number | undefined): string {
  return seconds === undefined || seconds <= 1 ? "in a moment" : `in ${seconds} seconds`;
}

function sentence(text: string): string {
  const whole = text.slice(0, 1).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}
