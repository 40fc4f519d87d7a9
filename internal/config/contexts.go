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
	// EmbeddingsURL is an API for embeddings like that of OpenAI, without /embeddings, that
	// ranks the results of a search. Empty disables it.
	EmbeddingsURL, EmbeddingsModel string
	// EmbeddingsKey is sent as a bearer token. It comes from the environment only.
	EmbeddingsKey string
}

// The ways in which contexts are reduced.
const (
	// CompressionBasic extracts sentences.
	CompressionBasic = "basic"
	// CompressionAdvanced lets a model write summaries, if one is configured.
	CompressionAdvanced = "advanced"
)

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
