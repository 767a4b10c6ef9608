import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

/** Turns tokens into text that only gateways with the same key can turn back. */
export type TokenSeal = {
  seal(token: string): string;
  /** Undefined for text that this key has not sealed. */
  open(sealed: string): string | undefined;
};

const algorithm = "aes-256-gcm";
const [nonceBytes, tagBytes] = [12, 16];

/**
 * A browser sends a cookie to every port of a host. A program at another port of it therefore sees the cookie, and must not
 * find a token in it: the cookie holds the token sealed, which is worth nothing as a bearer token.
 */
export function tokenSeal(servicesKey: string): TokenSeal {
  const key = Buffer.from(hkdfSync("sha256", servicesKey, "", "tapedeck sign-in cookie", 32));
  return {
    seal(token) {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv(algorithm, key, nonce);
      const text = Buffer.concat([cipher.update(token, "utf8"), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), text]).toString("base64url");
    },
    open(sealed) {
      const bytes = Buffer.from(sealed, "base64url");
      if (bytes.length < nonceBytes + tagBytes) return undefined;
      try {
        const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, nonceBytes), { authTagLength: tagBytes });
        decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes));
        return decipher.update(bytes.subarray(nonceBytes + tagBytes), undefined, "utf8") + decipher.final("utf8");
      } catch {
        return undefined;
      }
    },
  };
}
