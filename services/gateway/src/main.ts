import { runService } from "@tapedeck/shared/service/lifecycle";
import { createLogger } from "@tapedeck/shared/service/logger";
import { settingsSources } from "@tapedeck/shared/service/settings";
import { readConfig } from "./config.ts";
import { startGateway } from "./gateway.ts";

const log = createLogger("gateway");

await runService(log, () => startGateway(readConfig(settingsSources(process.env)), log));
