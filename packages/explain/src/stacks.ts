import type { Line } from "./lines.ts";
import { type CodePlace, isForeign, placesIn } from "./places.ts";

/** One frame of a stack: a call with its place. */
const frame =
  /^(?:at (?:async |new )?\S.{0,300}[):]?\d{0,7}\)?$|from \S+:\d+|File "[^"]{1,300}", line \d+|\S+\.rb:\d+:in |\S+\.php\(\d+\): \S.*\)$|\S+:\d+:in [`'][^`']{1,200}'$|#\d{1,4} +(?:0x[0-9a-f]{6,}|\S+\(\d+\))|\d{1,4}: 0x[0-9a-f]+|\/\S+\.(?:go|s):\d+(?: \+0x[0-9a-f]+)?$|❯ \S|# (?:\.{0,2}\/)?\S+:\d+:in|\([\w.]+ [\d.]+\) \S+\.exs?:\d+: |@ (?:\S{1,80} )?\S*\/\S+:\d+$|\[\d{1,3}\] \S.{0,200}\)$|├ |╰ )/;
/** Java's packages whose frames are not the user's own. */
const foreignCall =
  /^at (?:async )?(?:(?:[a-z]+@[\d.]*\/|app\/\/)?(?:java|javax|jdk|sun|com\.sun|kotlin|scala|groovy|org\.(?:junit|testng|spring|apache|hibernate|gradle|codehaus|mockito|hamcrest|assertj|opentest4j|postgresql|eclipse)\w*|com\.(?:zaxxer|mysql|fasterxml)|io\.(?:netty|grpc|micronaut|quarkus)|reactor|worker\.org|System|Microsoft|Xunit|NUnit)\.|(?:node:|internal\/|<anonymous>$|native$))|^\((?:elixir|stdlib|kernel|mix|ex_unit|iex|logger|eex|compiler) [\d.]+\)|^\d{1,4}: (?:core|std|alloc|test|rust_begin)::/;

const head =
  /^(?:Uncaught |Unhandled |Unhandled exception\.? ?|Fatal error: |PHP Fatal error: +|uncaughtException:? |exception: )?(?:\[?(?:Caused by|cause)\]?: )?(?:Uncaught )?(?:Exception in thread "[^"]{0,80}" )?(?:[\w$]+[.:\\]{1,2}){0,12}[A-Z]\w*(?:Error|Exception|Throwable|Failure|Interrupt|Exit|Panic|Warning|NotFound|Violation|Refused|Invalid|Timeout)\w*(?: \[\w+\])?(?: \([\w.]+\))?(?::|$)|^(?:Caused by|\[cause\]): \S|^(?:panic|fatal error|error|Error): \S|^(?:[\w$]+\.){2,12}[A-Z]\w*: \S|^[A-Z]\w*(?:Error|Exception)\b/;

export function isFrame({ bare }: Line): boolean {
  return frame.test(bare);
}

/** The line that begins the report of an exception. */
export function isExceptionHead({ bare }: Line): boolean {
  return head.test(bare);
}

export function isCausedBy({ bare }: Line): boolean {
  return /^(?:Caused by|\[cause\])(?: \(\d+\/\d+\))?: \S/.test(bare);
}

/** The place of a frame in the user's own code. */
export function ownPlace(line: Line): CodePlace | undefined {
  if (!frame.test(line.bare) || foreignCall.test(line.bare)) return undefined;
  return placesIn(line.bare).find((place) => !isForeign(place));
}
