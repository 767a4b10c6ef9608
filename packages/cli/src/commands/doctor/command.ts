import { Command } from "commander";
import { dataOption, jsonOption, urlOption } from "../options.ts";
import type { DoctorOptions } from "./run.ts";

export const doctorCommand = () =>
  new Command("doctor")
    .summary("look for what is in the way, and say what to do")
    .description(
      `Looks at this machine (Node.js, data folder, disk, ports, names, programs, what waits to be recorded), at the Tapedeck \
that runs here, and at the one that commands go to (both its ports, version, token, clock). Changes nothing. Ends with code 1 \
when something fails.`,
    )
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
