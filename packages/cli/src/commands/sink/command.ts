import { Command, InvalidArgumentError, Option } from "commander";
import { addSourceFlags, collectList, jsonOption, startText, urlOption } from "../options.ts";
import type { AddOptions, ParkedOptions, RewindOptions, SinkOptions } from "./run.ts";

const collectPair =
  (form: string) =>
  (text: string, pairs: Readonly<Record<string, string>> = {}) => {
    const [, name = "", value = ""] = /^([^:=\s]+)[:=]\s*(.*)$/.exec(text) ?? [];
    if (name === "") throw new InvalidArgumentError(`Expected ${form}.`);
    return { ...pairs, [name]: value };
  };

/** @throws InvalidArgumentError with the place where the JSON breaks */
export function jsonObject(text: string): object {
  const expected = 'Expected a JSON object, such as {"content": "{{text}}"}';
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch (error) {
    throw new InvalidArgumentError(`${expected}: ${error instanceof Error ? error.message : error}.`);
  }
  throw new InvalidArgumentError(`${expected}.`);
}

const where = (command: Command) => command.addOption(jsonOption()).addOption(urlOption());
const named = (name: string) => where(new Command(name).argument("<name>", "the sink"));

const addCommand = () =>
  where(addSourceFlags(new Command("add").argument("<name>", "its name").argument("<url>", "where events are posted")))
    .summary("deliver events to a URL as they are recorded")
    .description(`Delivers the events of the workspace to a URL as they are recorded: as CloudEvents, signed as Standard Webhooks, or \
as traces over OTLP; or as messages to a chat, when something fails and when it is good again. At least once, and in order. Without a filter it gets all events. The secret that signs is printed once.`)
    .option("-k, --kind <kind>", "only these kinds: build.failed, build.*, *.failed; repeatable", collectList)
    .option("--session <ulid>", "only these sessions; repeatable", collectList)
    .option("--subject <name>", "only these artifacts, resources, pods …; repeatable", collectList)
    .option("--outcome <outcome>", "only these outcomes; repeatable", collectList)
    .addOption(
      new Option("--format <format>", "what requests look like")
        .choices(["webhook", "otlp", "slack", "chat"])
        .default("webhook"),
    )
    .addOption(
      new Option("--mode <mode>", "several events in a request, or one")
        .choices(["batched", "structured"])
        .default("batched"),
    )
    .option("--cdevents", "send CDEvents instead of Tapedeck's own events")
    .option(
      "--template <json>",
      'with slack and chat: the JSON of a message, such as \'{"content": "{{text}}"}\'',
      jsonObject,
    )
    .option("--live", "with otlp: send spans at their start, too")
    .addOption(
      new Option("--start <start>", "now, start, a position, or a time: 10m (ago), yesterday, 2026-01-31T12:00:00Z")
        .default("now")
        .argParser(startText),
    )
    .option(
      "--header <name:value>",
      "sent with each request; repeatable",
      collectPair('a header such as "x-team: shop"'),
    )
    .option(
      "--header-env <name=variable>",
      "the same, with the value of an environment variable; repeatable",
      collectPair("a header and a variable, such as authorization=HOOK_AUTHORIZATION"),
    )
    .option("--secret-env <variable>", "environment variable with the secret that signs (whsec_…); default: a new one")
    .addHelpText(
      "after",
      `
Examples:
  tapedeck sink add ci https://hooks.example/tapedeck -k '*.failed'
  tapedeck sink add delivery https://hooks.example/cdevents --cdevents
  tapedeck sink add all https://hooks.example/all --start start --header-env authorization=HOOK_AUTHORIZATION
  tapedeck sink add traces https://collector.example/v1/traces --format otlp
  tapedeck sink add team https://hooks.slack.com/services/T0/B0/x --format slack`,
    )
    .action(async (name: string, url: string, options: AddOptions, command: Command) => {
      const isNarrowed = command.getOptionValueSource("source") === "env";
      await (await import("./run.ts")).addSink(name, url, options, isNarrowed);
    });

const listCommand = () =>
  where(new Command("list"))
    .summary("list sinks, with how far they are")
    .description("Lists the sinks of the workspace: where they deliver, how far they are behind, and what is parked.")
    .action(async (options: SinkOptions) => (await import("./run.ts")).listSinks(options));

const pauseCommand = () =>
  named("pause")
    .summary("let a sink stand still")
    .description("Lets a sink stand still. What is recorded meanwhile is delivered when it is resumed.")
    .action(async (name: string, options: SinkOptions) =>
      (await import("./run.ts")).changeSink("pause", name, options),
    );

const resumeCommand = () =>
  named("resume")
    .summary("let a paused sink go on")
    .description("Lets a paused sink go on where it stood.")
    .action(async (name: string, options: SinkOptions) =>
      (await import("./run.ts")).changeSink("resume", name, options),
    );

const rewindCommand = () =>
  named("rewind")
    .summary("set the place from which a sink goes on")
    .description("Sets the place from which a sink goes on. What it delivers again has the same ids.")
    .requiredOption(
      "--to <start>",
      "start, now, a position, or a time: 10m (ago), yesterday, 2026-01-31T12:00:00Z",
      startText,
    )
    .addHelpText(
      "after",
      `
Example:
  tapedeck sink rewind ci --to yesterday
  tapedeck sink rewind ci --to 2026-01-31T12:00:00Z`,
    )
    .action(async (name: string, options: RewindOptions) => (await import("./run.ts")).rewindSink(name, options));

const targetCommand = () =>
  named("target")
    .argument("<url>", "where events are posted from now on")
    .summary("change the URL of a sink, which keeps its place")
    .description(`Changes the URL to which a sink delivers. It keeps its place, its filter and its secret, and what waited is delivered there at \
once. The target of a sink of tapedeck.yaml is changed there.`)
    .addHelpText(
      "after",
      `
Example:
  tapedeck sink target team https://hooks.slack.com/services/T0/B0/z`,
    )
    .action(async (name: string, url: string, options: SinkOptions) =>
      (await import("./run.ts")).setTarget(name, url, options),
    );

const removeCommand = () =>
  named("remove")
    .summary("remove a sink, with its place and its parked events")
    .description(`Removes a sink, with its place and its parked events. One of tapedeck.yaml is removed there first; then this removes \
its place.`)
    .action(async (name: string, options: SinkOptions) => (await import("./run.ts")).removeSink(name, options));

const testCommand = () =>
  named("test")
    .summary("send one request without an event")
    .description(
      "Sends one request without an event, and says what the target answers. Fails if it refuses or is away.",
    )
    .action(async (name: string, options: SinkOptions) => (await import("./run.ts")).testSink(name, options));

const parkedCommand = () =>
  named("parked")
    .summary("list the events that a target refuses")
    .description("Lists the events that the target of a sink refuses, and why. The sink has gone on after them.")
    .action(async (name: string, options: SinkOptions) => (await import("./run.ts")).listParked(name, options));

const ofParked = (name: string) => named(name).option("--position <position>", "only the event at this position");

const retryCommand = () =>
  ofParked("retry")
    .summary("deliver parked events once more")
    .description(
      "Delivers parked events once more. Those that are accepted are parked no longer. Fails if one is refused, or the target is away.",
    )
    .action(async (name: string, options: ParkedOptions) => (await import("./run.ts")).retryParked(name, options));

const dropCommand = () =>
  ofParked("drop")
    .summary("give parked events up")
    .description("Gives parked events up: they are not delivered. They stay in the log.")
    .action(async (name: string, options: ParkedOptions) => (await import("./run.ts")).dropParked(name, options));

export const sinkCommand = () =>
  new Command("sink")
    .summary("deliver events to other systems as they are recorded")
    .description(`Delivers events to other systems as they are recorded, and shows how far that is. Changes need an admin's token if tokens are \
required.`)
    .addCommand(addCommand())
    .addCommand(listCommand())
    .addCommand(pauseCommand())
    .addCommand(resumeCommand())
    .addCommand(rewindCommand())
    .addCommand(targetCommand())
    .addCommand(testCommand())
    .addCommand(parkedCommand())
    .addCommand(retryCommand())
    .addCommand(dropCommand())
    .addCommand(removeCommand());
