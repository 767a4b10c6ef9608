import { InvalidArgumentError, Option } from "commander";
import { parsePlace } from "../gateway-place.ts";

/** `--label name=value`, any number of times. */
export function collectLabel(pair: string, labels: Readonly<Record<string, string>> = {}): Record<string, string> {
  const at = pair.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("It is not name=value.");
  return { ...labels, [pair.slice(0, at)]: pair.slice(at + 1) };
}

/** An option that may be given again and again, each with one value or several with commas. */
export function collectList(text: string, values: readonly string[] = []): string[] {
  return [...values, ...text.split(",").filter((value) => value !== "")];
}

export const hostPort = (text: string): string => hostPortLike("127.0.0.1:50051")(text);

export function hostPortLike(example: string): (text: string) => string {
  return (text) => {
    const port = Number(/^[^\s:]+:(\d{1,5})$/.exec(text)?.[1] ?? Number.NaN);
    if (!(port >= 1 && port <= 65_535)) throw new InvalidArgumentError(`It is not HOST:PORT, such as ${example}.`);
    return text;
  };
}

export function wholeNumber(text: string): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 1) throw new InvalidArgumentError("It is not a whole number above 0.");
  return number;
}

export const urlOption = () =>
  new Option("--url <url>", "where Tapedeck's HTTP is (default: http://127.0.0.1:7052)").env("TAPEDECK_URL");

export const jsonOption = () => new Option("--json", "for programs: JSON");

export const sourceOption = () =>
  new Option("-s, --source <source>", "developer/project, where there are several").env("TAPEDECK_SOURCE");

export const dataOption = () =>
  new Option("--data <folder>", "where the data are").default(".tapedeck").env("TAPEDECK_DATA");

export const toOption = () =>
  new Option("--to <address>", "where Tapedeck takes it (gRPC): host:port on this machine, else https://host")
    .default("127.0.0.1:7051")
    .env("TAPEDECK_TO")
    .argParser(gatewayAddress);

/** What else is wrong with it, such as a token that must not go there, is said when it is used. */
function gatewayAddress(text: string): string {
  try {
    parsePlace(text, "grpc");
    return text;
  } catch {
    throw new InvalidArgumentError("It is not HOST:PORT or https://HOST, such as https://tapedeck.example.");
  }
}
