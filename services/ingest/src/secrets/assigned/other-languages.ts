import type { TextSpan } from "../span.ts";
import { isNoSecret } from "./plausible.ts";
import { bareValue, quotedValue } from "./values.ts";

/** Words for a password. `trigger`: the part of it that ordinary output has least. */
const words: readonly { readonly word: string; readonly trigger: string }[] = [
  ...["passwort", "kennwort"].map((word) => ({ word, trigger: "wort" })),
  { word: "contrase[nñ]a", trigger: "rase" },
  { word: "mot[ _-]?de[ _-]?passe", trigger: "asse" },
  { word: "(?<!\\p{L})mdp", trigger: "?mdp" },
  { word: "(?<!\\p{L})clave", trigger: "lave" },
  { word: "senha", trigger: "enha" },
  { word: "has[lł]o", trigger: "?has" },
  { word: "wachtwoord", trigger: "twoo" },
  { word: "l[oö]senord", trigger: "enor" },
  { word: "adgangskode", trigger: "gsko" },
  { word: "salasana", trigger: "lasa" },
  { word: "heslo", trigger: "eslo" },
  { word: "jelsz[oó]", trigger: "jels" },
  { word: "parol[aă]", trigger: "arol" },
  { word: "[sş]ifre", trigger: "ifre" },
  { word: "kata ?sandi", trigger: "sand" },
  { word: "mật khẩu", trigger: "t kh" },
  ...[
    "пароль",
    "парола",
    "密码",
    "密碼",
    "口令",
    "パスワード",
    "비밀번호",
    "암호",
    "κωδικός",
    "סיסמה",
    "كلمة المرور",
    "รหัสผ่าน",
    "पासवर्ड",
  ].map((word) => ({ word, trigger: word })),
];

/** What may stand between word and value: signs, or "lautet", "是", "は". */
const sign = String.raw`[:=：＝]|=>|[ \t]-(?=[ \t])|[ \t]?(?:lautet|ist|es|est|é|è|è|是|为|為|は|が)(?=[ \t:：「"'])[:：]?`;
const assignment = new RegExp(
  String.raw`(?:${words.map(({ word }) => word).join("|")})["'\\)]{0,3}[ \t]{0,8}(?:${sign})[ \t　]{0,8}[「『«„“]?`,
  "giu",
);

/**
 * Four characters each, as `triggers.ts` takes them: of the text, and of its bytes in UTF-8. Only fixed cases of a letter
 * outside of ASCII are the same to it, so both are given.
 */
export const otherLanguageTriggers: readonly string[] = words.flatMap(({ trigger }) =>
  [trigger, trigger.toUpperCase()].flatMap((one) => [
    // Two characters are too few: what may stand after them is added.
    ...(one.length > 2 ? [one.slice(-4).padStart(4, "?")] : [...": =\"'\\"].map((after) => `?${one}${after}`)),
    Buffer.from(one).toString("latin1").slice(-4),
  ]),
);

/** Finds values that words for a password in other languages name: `Passwort: …`, `"contraseña": "…"`, `пароль=…`. */
export function otherLanguages(text: string): TextSpan[] {
  const spans: TextSpan[] = [];
  for (const { index, 0: before } of text.matchAll(assignment)) {
    const at = index + before.length;
    if (at < (spans.at(-1)?.end ?? 0)) continue;
    const quoted = quotedValue(text, at);
    const value = quoted ?? bareValue(text, at, /[\s"'`,;)}\]，。；、」』»“”]/, true);
    if (value === undefined || value.end - value.start < 3) continue;
    const visible = text.slice(value.start, Math.min(value.end, value.start + 4_000));
    // "Passwort: falsch" and "das Passwort ist falsch" are sentences.
    const isWord = quoted === undefined && /^[\p{L}\p{M}.!?]+$/u.test(visible) && !/[=＝]$/.test(before);
    if (!isWord && !isNoSecret(visible, "password", quoted !== undefined)) spans.push(value);
  }
  return spans;
}
