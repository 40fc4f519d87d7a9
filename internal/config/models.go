package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway/internal/spelling"
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
	if f.data[at] != '{' {
		f.fault(f.at("config-type", at, "/models"), faultf("write an object of models by their levels or names", `"models" holds %s`, kindOf(f.skip())))
		return
	}
	f.token()
	for f.dec.More() {
		keyAt := f.next()
		name, _ := f.token().(string)
		valueAt := f.next()
		var text json.RawMessage
		_ = f.dec.Decode(&text)
		pointer := "/models/" + escapePointer(name)
		if _, twice := f.config.Models[name]; twice {
			f.fault(f.at("config-duplicate", keyAt, pointer), faultf("remove one of the two", "the model %q is given twice", name))
			continue
		}
		m, offset, problem := decodeModel(name, text)
		if problem != nil {
			f.fault(f.at("config-model", valueAt+offset, pointer), problem)
			continue
		}
		if f.config.Models == nil {
			f.config.Models = map[string]Model{}
		}
		f.config.Models[name] = m
	}
	f.token()
}

// decodeModel reads one model; offset is where in its text the problem is, as far
// as that is known.
func decodeModel(name string, text []byte) (m Model, offset int, problem *fault) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	err := dec.Decode(&m)
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		return m, max(0, int(kind.Offset)-1), faultf("write "+article(kind.Type.String()), "%q of the model %q holds a %s", kind.Field, name, kind.Value)
	case err != nil:
		field, ok := strings.CutPrefix(err.Error(), "json: unknown field ")
		if !ok {
			return m, 0, faultf("mend it", "the model %q: %v", name, err)
		}
		return m, max(0, bytes.Index(text, []byte(field))), unknownModelField(name, field)
	case string(text) == "null" || !slices.Contains(Providers(), m.Provider):
		return m, 0, faultf("use one of: "+strings.Join(Providers(), ", "), "the model %q has the provider %q, which there is not", name, m.Provider)
	case m.Model == "":
		return m, 0, faultf(`add "model", the name that the server knows`, "the model %q has no name of a model", name)
	case m.MaxTokens < 0 || m.Price.Input < 0 || m.Price.Cached < 0 || m.Price.Output < 0:
		return m, 0, faultf("write a number from 0", "the model %q has a bound or a price below zero", name)
	}
	return m, 0, nil
}

// unknownModelField says what a member that means nothing was probably meant to be.
func unknownModelField(name, field string) *fault {
	fields := []string{"provider", "model", "baseUrl", "keyEnv", "maxTokens", "oldMaxTokens", "timeout", "price", "input", "cached", "output"}
	given, _ := strconv.Unquote(field)
	fix := "use one of: " + strings.Join(fields[:8], ", ")
	switch near := spelling.Closest(given, fields); {
	case strings.EqualFold(given, "key") || strings.EqualFold(given, "apiKey"):
		fix = "keys are read from the environment: name the variable in keyEnv"
	case near != "":
		fix = fmt.Sprintf("did you mean %q?", near)
	}
	return &fault{message: fmt.Sprintf("%s of the model %q is not a setting", field, name), fix: fix}
}
