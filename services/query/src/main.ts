import { createLogger } from "@tapedeck/shared/service/logger";
import { runService } from "@tapedeck/shared/service/process/lifecycle";
import { settingsSources } from "@tapedeck/shared/service/settings";
import { readConfig } from "./config.ts";
import { startQuery } from "./query.ts";

const log = createLogger("query");

await runService(log, () => startQuery(readConfig(settingsSources(process.env)), log));
