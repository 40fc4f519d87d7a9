package config

import (
	"fmt"
	"slices"
	"strings"
)

// Model is a language model for the agents of machines.
type Model struct {
	// Provider is one of Providers.
	Provider string `json:"provider"`
	// Model is the name that the server uses. For ProviderScripted it is a file.
	Model string `json:"model"`
	// BaseURL selects another server with the same protocol.
	BaseURL string `json:"baseUrl,omitempty"`
	// KeyEnv is the variable that contains the key. "" means the provider's usual variable.
	KeyEnv string `json:"keyEnv,omitempty"`
	// MaxTokens is the maximum length of an answer in tokens. 0 is the adapter's default.
	MaxTokens int `json:"maxTokens,omitempty"`
	// OldMaxTokens sends MaxTokens as max_tokens, for servers that support no other name.
	OldMaxTokens bool `json:"oldMaxTokens,omitempty"`
	// Timeout is the time limit of a request. 0 is five minutes.
	Timeout UpstreamTime `json:"timeout,omitempty"`
	Price   ModelPrice   `json:"price"`
}

// ModelPrice is the price of a million tokens, in any currency.
type ModelPrice struct {
	Input float64 `json:"input,omitempty"`
	// Cached is the price of input tokens that the server had cached. 0 means that they
	// have the price Input.
	Cached float64 `json:"cached,omitempty"`
	Output float64 `json:"output,omitempty"`
}

// The providers.
const (
	ProviderOpenAI    = "openai"
	ProviderAnthropic = "anthropic"
	ProviderScripted  = "scripted"
)

// Providers returns the supported protocols of model servers, and the scripted provider.
func Providers() []string { return []string{ProviderOpenAI, ProviderAnthropic, ProviderScripted} }

// readModels reads the models of the file, by the levels of roles or other names.
func (f *fileReader) readModels(at int) {
	f.readEntries(at, namedEntries{
		one: "model", fix: "write an object of models by their levels or names",
		read: func(name string, text []byte, _ Origin) (int, *settingError) {
			var m Model
			of := fmt.Sprintf("the model %q", name)
			if offset, invalid := decodeEntry(text, &m, of); invalid != nil {
				return offset, explainKey(text, offset, invalid)
			}
			if invalid := m.validate(of); invalid != nil {
				return 0, invalid
			}
			if f.config.Models == nil {
				f.config.Models = map[string]Model{}
			}
			f.config.Models[name] = m
			return 0, nil
		},
	})
}

// validate checks a model without asking its server. of is the description of the model in
// messages.
func (m *Model) validate(of string) *settingError {
	switch {
	case m.Provider == "":
		return newError(`add "provider", one of: `+strings.Join(Providers(), ", "), "%s has no provider", of)
	case !slices.Contains(Providers(), m.Provider):
		return newError("use one of: "+strings.Join(Providers(), ", "), "%s has the unknown provider %q", of, m.Provider)
	case m.Model == "":
		return newError(`add "model": the name that the server uses, or the file of a scripted model`, "%s has no model name", of)
	case m.MaxTokens < 0:
		return newError("write a number of at least 0", "%s has the negative maxTokens %d", of, m.MaxTokens)
	case m.Price.Input < 0 || m.Price.Cached < 0 || m.Price.Output < 0:
		return newError("write a number of at least 0", "%s has a negative price: input %g, cached %g, output %g", of, m.Price.Input, m.Price.Cached, m.Price.Output)
	}
	return nil
}

// explainKey returns the error unchanged, unless the invalid member at offset is a key of a
// model server. The fix then names the member keyEnv, because keys are read from the
// environment.
func explainKey(text []byte, offset int, invalid *settingError) *settingError {
	field := strings.ToLower(string(text[min(offset, len(text)):]))
	if strings.HasPrefix(field, `"key"`) || strings.HasPrefix(field, `"apikey"`) {
		invalid.fix = "keys are read from the environment; name the variable in keyEnv"
	}
	return invalid
}
