import { createLogger } from "@tapedeck/shared/service/logger";
import { runService } from "@tapedeck/shared/service/process/lifecycle";
import { settingsSources } from "@tapedeck/shared/service/settings";
import { readConfig } from "./config.ts";
import { startIngest } from "./ingest.ts";

const log = createLogger("ingest");

// Its death can hang the Skaffold that it reads, so a mistake of ours in one corner must not end all of it.
process.on("unhandledRejection", (err) => log.error({ err }, "an unhandled failure"));

await runService(log, () => startIngest(readConfig(settingsSources(process.env)), log));
