package attest

import "crypto/ed25519"

// SignBytes signs any bytes, for files that Sign would not make.
func SignBytes(key PrivateKey, data []byte) []byte { return ed25519.Sign(key.key, data) }
