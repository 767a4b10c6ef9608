import { createLogger } from "@tapedeck/shared/service/logger";
import { runService } from "@tapedeck/shared/service/process/lifecycle";
import { settingsSources } from "@tapedeck/shared/service/settings";
import { readConfig } from "./config.ts";
import { startGateway } from "./gateway.ts";

const log = createLogger("gateway");

// Small buffers are cut from pools of 64 KiB, and one that waits for a slow reader would keep all of its pool, in which
// the others' are long gone: a stalled reader would cost eight times what it holds.
Buffer.poolSize = 1_024;

await runService(log, () => startGateway(readConfig(settingsSources(process.env)), log));
