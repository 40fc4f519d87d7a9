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
	// Model is the name that the server knows; of ProviderScripted it is a file.
	Model string `json:"model"`
	// BaseURL reaches another server with the same protocol.
	BaseURL string `json:"baseUrl,omitempty"`
	// KeyEnv names the variable that has the key; "" is the provider's usual one.
	KeyEnv string `json:"keyEnv,omitempty"`
	// MaxTokens bounds an answer; 0 is the adapter's own bound.
	MaxTokens int `json:"maxTokens,omitempty"`
	// OldMaxTokens is for servers that know max_tokens alone.
	OldMaxTokens bool `json:"oldMaxTokens,omitempty"`
	// Timeout bounds one request; 0 is ten minutes.
	Timeout UpstreamTime `json:"timeout,omitempty"`
	Price   ModelPrice   `json:"price"`
}

// ModelPrice is what a million tokens cost, in a currency of one's own.
type ModelPrice struct {
	Input float64 `json:"input,omitempty"`
	// Cached is for those of the input that the server had in store; 0 is Input.
	Cached float64 `json:"cached,omitempty"`
	Output float64 `json:"output,omitempty"`
}

// The providers.
const (
	ProviderOpenAI    = "openai"
	ProviderAnthropic = "anthropic"
	ProviderScripted  = "scripted"
)

// Providers are the protocols that models are spoken to by, and the scripted one.
func Providers() []string { return []string{ProviderOpenAI, ProviderAnthropic, ProviderScripted} }

// readModels reads the models of the file, by the levels of roles or other names.
func (f *fileReader) readModels(at int) {
	f.entries(at, entries{
		one: "model", fix: "write an object of models by their levels or names",
		read: func(name string, text []byte, _ Origin) (int, *fault) {
			var m Model
			of := fmt.Sprintf("the model %q", name)
			if offset, problem := decodeEntry(text, &m, of); problem != nil {
				return offset, keyOfModel(text, offset, problem)
			}
			if problem := m.check(of); problem != nil {
				return 0, problem
			}
			if f.config.Models == nil {
				f.config.Models = map[string]Model{}
			}
			f.config.Models[name] = m
			return 0, nil
		},
	})
}

// check judges what can be judged without asking the server; of is what the model is
// called in messages.
func (m *Model) check(of string) *fault {
	switch {
	case !slices.Contains(Providers(), m.Provider):
		return faultf("use one of: "+strings.Join(Providers(), ", "), "%s has the provider %q, which there is not", of, m.Provider)
	case m.Model == "":
		return faultf(`add "model", the name that the server knows`, "%s has no name of a model", of)
	case m.MaxTokens < 0 || m.Price.Input < 0 || m.Price.Cached < 0 || m.Price.Output < 0:
		return faultf("write a number from 0", "%s has a bound or a price below zero", of)
	}
	return nil
}

// keyOfModel says of a key that is written into the file where it belongs, and leaves
// other problems as they are.
func keyOfModel(text []byte, offset int, problem *fault) *fault {
	field := strings.ToLower(string(text[min(offset, len(text)):]))
	if strings.HasPrefix(field, `"key"`) || strings.HasPrefix(field, `"apikey"`) {
		problem.fix = "keys are read from the environment: name the variable in keyEnv"
	}
	return problem
}
