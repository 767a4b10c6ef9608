import type { Line } from "./lines.ts";

const advice =
  /^(?:= )?(?:help|hint|HINT|Hint|fix|Fix|tip|Tip|suggestion|Suggestion|advice)s?: (?<said>\S.{3,400})$|^(?<whole>(?:Did you (?:mean|forget)|(?:To fix this|To resolve|To address this|To add it)\b|Please (?:update|run|install|use|add|set|check|make sure|verify|upgrade|provide|specify)|Try (?:running|using|adding|setting|checking|to |`)|(?:You|you) (?:can|may|need to|might|should|must) |Consider |Run ['"`]|run ['"`]|Use ['"`]|use ['"`]|Make sure |Ensure |Install ).{3,400})$|\. (?<last>(?:Please (?:update|run|install|use|add|set|upgrade)|Try (?:running|using|adding)|Did you mean|Use ['"`]|Run ['"`]|Is the docker daemon) ?.{3,300})$/;

/** Advice that fits every failure, and so helps with none. */
const boilerplate =
  /open an issue|report (?:it|this|an issue)|file a bug|for (?:more|full|further) (?:information|details|help|info)|\bretry\b|try again|--stacktrace|--debug|--verbose|--info\b|-X switch|-e switch|RUST_BACKTRACE|--explain|full (?:stack|log|report|backtrace)|see (?:the )?(?:log|above|docs|documentation)|read the output|\bfund\b|npm help|npm audit|documentation explains|in the log|complete log|to rerun|use ['"`]--help|new (?:version|release)|pip install --upgrade pip|Learn more|--help|contact your|if this is unexpected|above error is unexpected/i;

/** What the tool recommends near a cause, below it first. */
export function adviceFor(lines: readonly Line[], index: number): string | null {
  const own = adviceIn(lines[index]);
  if (own !== undefined) return own;
  const below = lines.slice(index + 1, index + 16).map(adviceIn);
  return (
    below.find((text) => text !== undefined) ??
    lines
      .slice(Math.max(0, index - 6), index)
      .map(adviceIn)
      .find((text) => text !== undefined) ??
    null
  );
}

function adviceIn(line: Line | undefined): string | undefined {
  if (line === undefined || line.level === "info") return undefined;
  const groups = advice.exec(line.bare)?.groups;
  const said = groups?.said ?? groups?.whole ?? groups?.last;
  return said === undefined || boilerplate.test(line.bare) ? undefined : said.trim();
}
