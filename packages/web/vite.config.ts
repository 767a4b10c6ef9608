import { defineConfig } from "vite";

// JSX becomes calls of preact's own runtime, as set in tsconfig.json. The page's files are in assets/, named by their
// content.
export default defineConfig({
  build: {
    target: "es2022",
    modulePreload: { polyfill: false },
    // A font or image in a data URL would need an exception in the content security policy.
    assetsInlineLimit: 0,
    reportCompressedSize: true,
  },
  server: {
    proxy: { "/api/v1": { target: "http://127.0.0.1:7052", ws: true }, "/about": "http://127.0.0.1:7052" },
  },
});
