// Verifies the attestation FILE with the public key in KEY by Sigstore's implementation of
// DSSE, and prints its payload. The implementation reads bundles: the file is the envelope
// of one without a certificate, time stamps or a transparency log.
//
//   node attestation.mjs FILE KEY KEYID
import { createPublicKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { bundleFromJSON } from "@sigstore/bundle";
import { toSignedEntity, toTrustMaterial, Verifier } from "@sigstore/verify";

const [file, key, id] = process.argv.slice(2);
const bundle = bundleFromJSON({
  mediaType: "application/vnd.dev.sigstore.bundle.v0.3+json",
  verificationMaterial: { publicKey: { hint: id }, tlogEntries: [] },
  dsseEnvelope: JSON.parse(readFileSync(file, "utf8")),
});
const trust = toTrustMaterial(
  { certificateAuthorities: [], timestampAuthorities: [], tlogs: [], ctlogs: [] },
  (hint) => {
    if (hint !== id) throw new Error(`the key ${hint} is unknown`);
    return { publicKey: createPublicKey(readFileSync(key)), validFor: () => true };
  },
);
new Verifier(trust, { ctlogThreshold: 0, tlogThreshold: 0, timestampThreshold: 0 }).verify(toSignedEntity(bundle));
if (bundle.content.dsseEnvelope.signatures[0].keyid !== id) throw new Error("the id of the key differs");
process.stdout.write(bundle.content.dsseEnvelope.payload);
