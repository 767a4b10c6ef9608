import { Command } from "commander";
import { dataOption, jsonOption, urlOption } from "../options.ts";
import type { DoctorOptions } from "./run.ts";

export const doctorCommand = () =>
  new Command("doctor")
    .summary("check this machine and the server, and suggest fixes")
    .description(`Checks this machine (Node.js, data folder, disk, ports, names, programs, undelivered recordings), the server \
that runs here, and the one that commands use (ports, version, token, clock). Changes nothing. Exits with code 1 \
if a check fails.`)
    .addOption(dataOption())
    .addOption(jsonOption())
    .addOption(urlOption())
    .addHelpText(
      "after",
      `
Example:
  tapedeck doctor
  tapedeck doctor --url https://tapedeck.example`,
    )
    .action(async (options: DoctorOptions) => (await import("./run.ts")).doctor(options));
