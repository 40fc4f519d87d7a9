package config

import (
	"net/url"
	"strconv"
)

// Context says what is done with contexts.
type Context struct {
	// Compression is CompressionBasic or CompressionAdvanced.
	Compression string
	// TokenLimit is how large a context may become before it is reduced; Threshold
	// is the percentage of it from which on that begins, in the background.
	TokenLimit, Threshold int
	// Embeddings is the service that ranks what a search has found.
	Embeddings Embeddings
}

// How contexts are reduced.
const (
	// CompressionBasic takes extracts.
	CompressionBasic = "basic"
	// CompressionAdvanced has a model write summaries, where there is one.
	CompressionAdvanced = "advanced"
)

// Embeddings is a service with OpenAI's interface for embeddings.
type Embeddings struct {
	// URL is that of the API, up to and without /embeddings; empty uses none.
	URL   string
	Model string
	// Key is sent as a bearer token; it comes from the environment alone.
	Key string
}

// Encryption says how checkpoints are encrypted.
type Encryption struct {
	// Mode is one of the Encryption constants.
	Mode string
	// KeyFile holds the key of EncryptionKeyFile; PassphraseFile the passphrase of
	// EncryptionPassphrase, if it is in a file.
	KeyFile, PassphraseFile string
	// Passphrase is the one of the environment, or empty.
	Passphrase string
}

// Where the key of checkpoints is.
const (
	EncryptionDisabled = "disabled"
	// EncryptionEnabled leaves the choice to Guideway: the keychain of the system,
	// or the key file where there is none. Once made, the choice stands.
	EncryptionEnabled    = "enabled"
	EncryptionKeychain   = "keychain"
	EncryptionKeyFile    = "key-file"
	EncryptionPassphrase = "passphrase"
)

func contextDefaults() Context {
	return Context{Compression: CompressionBasic, TokenLimit: 32_000, Threshold: 80, Embeddings: Embeddings{Model: "text-embedding-3-small"}}
}

func contextSettings() []setting {
	return []setting{
		{
			Setting: Setting{
				Name: "context.compression", Kind: KindText, Flag: "context-compression", Env: "GUIDEWAY_CONTEXT_COMPRESSION",
				Aliases: []Alias{{Name: "WORKRAIL_CONTEXT_COMPRESSION"}},
				Usage:   "How runs are summarised: by extracts, or by a model that is set for machines.",
				Allowed: []string{CompressionBasic, CompressionAdvanced},
			},
			set:  func(c *Config, v value) { c.Context.Compression = v.text },
			text: func(c *Config) string { return c.Context.Compression },
		},
		{
			Setting: Setting{
				Name: "context.tokenLimit", Kind: KindCount, Flag: "context-token-limit", Env: "GUIDEWAY_CONTEXT_TOKEN_LIMIT",
				Usage: "How many tokens a context may have; 0 is no limit.",
			},
			most: 100_000_000,
			set:  func(c *Config, v value) { c.Context.TokenLimit = int(v.number) },
			text: func(c *Config) string { return strconv.Itoa(c.Context.TokenLimit) },
		},
		{
			Setting: Setting{
				Name: "context.threshold", Kind: KindPercent, Flag: "context-threshold", Env: "GUIDEWAY_CONTEXT_THRESHOLD",
				Usage: "The percentage of the token limit from which on a context is reduced in the background.",
			},
			set:  func(c *Config, v value) { c.Context.Threshold = int(v.number) },
			text: func(c *Config) string { return strconv.Itoa(c.Context.Threshold) },
		},
		{
			Setting: Setting{
				Name: "context.embeddingsUrl", Kind: KindText, Flag: "embeddings-url", Env: "GUIDEWAY_EMBEDDINGS_URL",
				Usage: "A service with OpenAI's API for embeddings, without the /embeddings; what a search finds is sent to it to be ranked. Its key is in $GUIDEWAY_EMBEDDINGS_KEY.",
			},
			check: checkEmbeddings,
			set:   func(c *Config, v value) { c.Context.Embeddings.URL = v.text },
			text:  func(c *Config) string { return c.Context.Embeddings.URL },
		},
		{
			Setting: Setting{
				Name: "context.embeddingsModel", Kind: KindText, Flag: "embeddings-model", Env: "GUIDEWAY_EMBEDDINGS_MODEL",
				Usage: "The model of that service.",
			},
			set:  func(c *Config, v value) { c.Context.Embeddings.Model = v.text },
			text: func(c *Config) string { return c.Context.Embeddings.Model },
		},
	}
}

// checkEmbeddings takes the URL of an API. Credentials in it would be shown.
func checkEmbeddings(text string) *fault {
	const fix = `write a URL such as "https://api.openai.com/v1"`
	u, err := url.Parse(text)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "":
		return faultf(fix, "it is not the URL of an API")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return faultf(fix+"; put a key into "+EnvEmbeddingsKey, "the URL of the API has more than a host and a path")
	}
	return nil
}

func encryptionSettings() []setting {
	return []setting{
		{
			Setting: Setting{
				Name: "encryption.mode", Kind: KindText, Flag: "encryption", Env: "GUIDEWAY_ENCRYPTION",
				Aliases: []Alias{{Name: "WORKRAIL_ENCRYPTION", convert: encryptionSwitch}},
				Usage:   "Whether checkpoints are encrypted, and where the key is. \"enabled\" is the keychain of the system, or the key file where there is none.",
				Allowed: []string{EncryptionDisabled, EncryptionEnabled, EncryptionKeychain, EncryptionKeyFile, EncryptionPassphrase},
			},
			set:  func(c *Config, v value) { c.Encryption.Mode = v.text },
			text: func(c *Config) string { return c.Encryption.Mode },
		},
		{
			Setting: Setting{
				Name: "encryption.keyFile", Kind: KindPath, Flag: "encryption-key-file", Env: "GUIDEWAY_ENCRYPTION_KEY_FILE",
				Usage: "File of the key; by default \"checkpoints.key\" in the user's configuration directory.",
			},
			set:  func(c *Config, v value) { c.Encryption.KeyFile = v.text },
			text: func(c *Config) string { return c.Encryption.KeyFile },
		},
		{
			Setting: Setting{
				Name: "encryption.passphraseFile", Kind: KindPath, Flag: "encryption-passphrase-file", Env: "GUIDEWAY_ENCRYPTION_PASSPHRASE_FILE",
				Usage: "File of the passphrase. Without it the passphrase is in $GUIDEWAY_ENCRYPTION_PASSPHRASE, or is typed at the terminal.",
			},
			set:  func(c *Config, v value) { c.Encryption.PassphraseFile = v.text },
			text: func(c *Config) string { return c.Encryption.PassphraseFile },
		},
	}
}

// encryptionSwitch reads a switch besides the modes.
func encryptionSwitch(text string) (string, *fault) {
	switch text {
	case "true", "1", "on", "yes":
		return EncryptionEnabled, nil
	case "false", "0", "off", "no":
		return EncryptionDisabled, nil
	}
	return text, nil
}
