import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// The build is committed and must come out the same on every machine: names hold
// no more than the hash of their content.
export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "dist",
    assetsDir: "assets",
    emptyOutDir: true,
    assetsInlineLimit: 0, // the content security policy has no data: but for images
    sourcemap: false,
    modulePreload: { polyfill: false },
  },
  // The login stores the page's key for this origin.
  server: { proxy: { "/api": "http://127.0.0.1:3000", "/login": "http://127.0.0.1:3000", "/assets": "http://127.0.0.1:3000" } },
});
