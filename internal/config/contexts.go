package config

import "net/url"

// Context is the settings of contexts.
type Context struct {
	// Compression is CompressionBasic or CompressionAdvanced.
	Compression string
	// TokenLimit is the maximum size of a context in tokens. Threshold is the percentage of
	// TokenLimit at which the context is reduced in the background.
	TokenLimit, Threshold int
	// PersonalData treats personal data like secrets; see secret.Detector.
	PersonalData bool
	// Embeddings is the service that ranks the results of a search.
	Embeddings Embeddings
}

// The ways in which contexts are reduced.
const (
	// CompressionBasic extracts sentences.
	CompressionBasic = "basic"
	// CompressionAdvanced lets a model write summaries, if one is configured.
	CompressionAdvanced = "advanced"
)

// Embeddings is a service with OpenAI's API for embeddings.
type Embeddings struct {
	// URL is the API without /embeddings. Empty disables the service.
	URL   string
	Model string
	// Key is sent as a bearer token. It comes from the environment only.
	Key string
}

// Encryption is the settings of the encryption of checkpoints.
type Encryption struct {
	// Mode is the mode of the encryption, such as EncryptionEnabled.
	Mode string
	// KeyFile contains the key of EncryptionKeyFile, and of EncryptionEnabled if there is
	// no keychain. PassphraseFile contains the passphrase of EncryptionPassphrase; it is
	// not used if Passphrase is set.
	KeyFile, PassphraseFile string
	// Passphrase is the passphrase from the environment, or "".
	Passphrase string
}

// The modes of the encryption.
const (
	EncryptionDisabled = "disabled"
	// EncryptionEnabled lets Guideway choose: the keychain of the system, or the key file
	// if there is no keychain. The choice is permanent.
	EncryptionEnabled    = "enabled"
	EncryptionKeychain   = "keychain"
	EncryptionKeyFile    = "key-file"
	EncryptionPassphrase = "passphrase"
)

func contextDefaults() Context {
	return Context{Compression: CompressionBasic, TokenLimit: 32_000, Threshold: 80, Embeddings: Embeddings{Model: "text-embedding-3-small"}}
}

func contextSettings() []Setting {
	return []Setting{
		{
			Name: "context.compression", Kind: KindText, Flag: "context-compression", Env: "GUIDEWAY_CONTEXT_COMPRESSION",
			Aliases: []Alias{{Name: "WORKRAIL_CONTEXT_COMPRESSION"}},
			Usage:   "How runs are summarized: \"basic\" uses extracts, and \"advanced\" uses a model configured for machines.",
			Allowed: []string{CompressionBasic, CompressionAdvanced},
			field:   func(c *Config) any { return &c.Context.Compression },
		},
		{
			Name: "context.tokenLimit", Kind: KindCount, Flag: "context-token-limit", Env: "GUIDEWAY_CONTEXT_TOKEN_LIMIT",
			Usage: "Maximum tokens of a context; 0 means no limit.",
			most:  100_000_000,
			field: func(c *Config) any { return &c.Context.TokenLimit },
		},
		{
			Name: "context.threshold", Kind: KindPercent, Flag: "context-threshold", Env: "GUIDEWAY_CONTEXT_THRESHOLD",
			Usage: "Percentage of context.tokenLimit at which a context is reduced in the background.",
			field: func(c *Config) any { return &c.Context.Threshold },
		},
		{
			Name: "context.personalData", Kind: KindBool, Flag: "context-personal-data", Env: "GUIDEWAY_CONTEXT_PERSONAL_DATA",
			Usage: "Whether personal data is treated like secrets in warnings and in the request log: e-mail addresses, and the numbers of cards, bank accounts (IBAN), phones and US social security.",
			field: func(c *Config) any { return &c.Context.PersonalData },
		},
		{
			Name: "context.embeddingsUrl", Kind: KindText, Flag: "embeddings-url", Env: "GUIDEWAY_EMBEDDINGS_URL",
			Usage: "Base URL, without /embeddings, of an OpenAI-compatible embeddings API that ranks search results. The API key is read from $GUIDEWAY_EMBEDDINGS_KEY.",
			check: checkEmbeddings,
			field: func(c *Config) any { return &c.Context.Embeddings.URL },
		},
		{
			Name: "context.embeddingsModel", Kind: KindText, Flag: "embeddings-model", Env: "GUIDEWAY_EMBEDDINGS_MODEL",
			Usage: "Model of the embeddings API.",
			field: func(c *Config) any { return &c.Context.Embeddings.Model },
		},
	}
}

// checkEmbeddings accepts the URL of an API. It refuses a user name, a password, a query
// and a fragment, because they may contain a secret and the URL is shown.
func checkEmbeddings(text string) *settingError {
	const fix = `write a URL such as "https://api.openai.com/v1"`
	u, err := url.Parse(text)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "":
		return newError(fix, "the value is not an http or https URL")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return newError(fix+"; put a key into "+EnvEmbeddingsKey, "the URL of the API must not have a user name, a query or a fragment")
	}
	return nil
}

func encryptionSettings() []Setting {
	return []Setting{
		{
			Name: "encryption.mode", Kind: KindText, Flag: "encryption", Env: "GUIDEWAY_ENCRYPTION",
			Aliases: []Alias{{Name: "WORKRAIL_ENCRYPTION", convert: encryptionSwitch}},
			Usage:   "Whether runs, session documents and checkpoints are encrypted, and where the key is. \"enabled\" uses the keychain of the system, or the key file if there is no keychain.",
			Allowed: []string{EncryptionDisabled, EncryptionEnabled, EncryptionKeychain, EncryptionKeyFile, EncryptionPassphrase},
			field:   func(c *Config) any { return &c.Encryption.Mode },
		},
		{
			Name: "encryption.keyFile", Kind: KindPath, Flag: "encryption-key-file", Env: "GUIDEWAY_ENCRYPTION_KEY_FILE",
			Usage: "File of the key of the encryption; by default \"checkpoints.key\" in the user's configuration directory.",
			field: func(c *Config) any { return &c.Encryption.KeyFile },
		},
		{
			Name: "encryption.passphraseFile", Kind: KindPath, Flag: "encryption-passphrase-file", Env: "GUIDEWAY_ENCRYPTION_PASSPHRASE_FILE",
			Usage: "File with the passphrase of the encryption. Without this file, the passphrase is read from $GUIDEWAY_ENCRYPTION_PASSPHRASE or entered at the terminal.",
			field: func(c *Config) any { return &c.Encryption.PassphraseFile },
		},
	}
}

// encryptionSwitch converts a switch to a mode. It returns any other text unchanged.
func encryptionSwitch(text string) (string, *settingError) {
	switch text {
	case "true", "1", "on", "yes":
		return EncryptionEnabled, nil
	case "false", "0", "off", "no":
		return EncryptionDisabled, nil
	}
	return text, nil
}
