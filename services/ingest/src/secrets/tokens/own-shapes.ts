import type { Run, TokenShape } from "./token-shape.ts";

/** Kinds of tokens that the table has not, or more strictly than they are given out. */
const word = "\\-0-9A-Z_a-z";
const alnum = "0-9A-Za-z";
const endless = 1_000;

const shapes: readonly (readonly [id: string, prefix: string, ...rest: (string | Run)[]])[] = [
  ["tapedeck", "tdk_", [word, 43, 43]],
  ...["ghp_", "gho_", "ghu_", "ghs_", "ghr_"].map((prefix) => ["github", prefix, [alnum, 30, endless]] as const),
  ["github", "github_pat_", ["0-9A-Z_a-z", 22, endless]],
  ["aws", "AKIA", ["0-9A-Z", 16, 16]],
  ["aws", "ASIA", ["0-9A-Z", 16, 16]],
  ["google-oauth", "ya29.", [word, 20, endless]],
  ["google-client-secret", "GOCSPX-", [word, 20, endless]],
  ["slack", "xox", ["abeoprs", 1, 1], "-", ["\\-0-9A-Za-z", 10, endless]],
  ["slack", "xapp-", ["\\-0-9A-Za-z", 10, endless]],
  ["slack", "hooks.slack.com/services/", ["/-9A-Za-z", 20, endless]],
  ["discord-webhook", "discord.com/api/webhooks/", ["0-9", 15, 25], "/", [word, 40, endless]],
  ["npm", "npm_", [alnum, 36, endless]],
  ["pypi", "pypi-", [word, 50, endless]],
  ["docker-hub", "dckr_pat_", [word, 20, endless]],
  ["docker-hub", "dckr_oat_", [word, 20, endless]],
  ...["sk_live_", "sk_test_", "rk_live_", "rk_test_"].map(
    (prefix) => ["stripe", prefix, [alnum, 16, endless]] as const,
  ),
  ["stripe", "whsec_", [alnum, 24, endless]],
  ...["sk-proj-", "sk-svcacct-", "sk-ant-"].map((prefix) => ["ai", prefix, [word, 20, endless]] as const),
  ["groq", "gsk_", [alnum, 40, endless]],
  ...["hvs.", "hvb.", "hvr."].map((prefix) => ["vault", prefix, [word, 24, endless]] as const),
  ["sendgrid", "SG.", [word, 16, 32], ".", [word, 32, 64]],
  ["atlassian", "ATATT3", ["\\-0-9=A-Z_a-z", 40, endless]],
  ["atlassian", "ATCTT3", ["\\-0-9=A-Z_a-z", 40, endless]],
  ["bitbucket", "ATBB", [alnum, 32, 40]],
  ["nuget", "oy2", ["0-9a-z", 43, 43]],
  ["new-relic", "NRAK-", ["0-9A-Z", 27, 27]],
  ["grafana", "glc_", ["+/-9A-Za-z", 32, endless]],
  ["jwt-of-basic-auth", "eyJrIjoi", [alnum, 70, endless]],
];

export const ownShapes: readonly TokenShape[] = shapes.map(([id, prefix, ...rest]) => {
  const last = rest.at(-1);
  const fixed = typeof last === "object" && last[2] < endless;
  return { id, parts: [prefix, ...rest], alone: fixed && id !== "tapedeck", near: [] };
});
