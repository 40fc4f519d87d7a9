package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway/internal/config"
)

// All members of a model are read, including prices and the variable of the key.
func TestModels(t *testing.T) {
	t.Parallel()
	path := writeConfig(t, `{"models": {
		"base": {"provider": "anthropic", "model": "big", "keyEnv": "MY_KEY", "price": {"input": 3, "cached": 0.3, "output": 15}},
		"fast": {"provider": "openai", "model": "small", "baseUrl": "http://127.0.0.1:1/v1", "oldMaxTokens": true, "maxTokens": 100, "timeout": "90s"}
	}}`)
	got := loadConfig(t, config.Options{File: path, Getenv: environment(), GOOS: "linux", Dir: "/"}).Models
	want := map[string]config.Model{
		"base": {Provider: "anthropic", Model: "big", KeyEnv: "MY_KEY", Price: config.ModelPrice{Input: 3, Cached: 0.3, Output: 15}},
		"fast": {
			Provider: "openai", Model: "small", BaseURL: "http://127.0.0.1:1/v1", OldMaxTokens: true, MaxTokens: 100,
			Timeout: config.UpstreamTime(90 * time.Second),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestInvalidModels checks the error about each kind of invalid model, including a model
// with an API key.
func TestInvalidModels(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"models": []}`:          `write an object of models`,
		`{"models": {"a": null}}`: `the model "a" is null; write an object`,
		`{"models": {"a": {"provider": "opnai", "model": "x"}}}`:                                             `use one of: openai, anthropic, scripted`,
		`{"models": {"a": {"provider": "openai"}}}`:                                                          `has no model name`,
		`{"models": {"a": {"provider": "openai", "model": "x", "apiKey": "secret"}}}`:                        `keys are read from the environment`,
		`{"models": {"a": {"provider": "openai", "model": "x", "baseURI": "x"}}}`:                            `did you mean "baseUrl"?`,
		`{"models": {"a": {"provider": "openai", "model": "x", "maxTokens": "many"}}}`:                       `write a whole number`,
		`{"models": {"a": {"provider": "openai", "model": "x", "price": {"input": "dear"}}}}`:                `write a number`,
		`{"models": {"a": {"provider": "openai", "model": "x", "price": {"input": -1}}}}`:                    `negative price`,
		`{"models": {"a": {"provider": "openai", "model": "x"}, "a": {"provider": "openai", "model": "y"}}}`: `is set twice`,
		`{"models": {"a": {"provider": "openai", "model": "x", "timeout": "soon"}}}`:                         `"timeout" of the model "a" is "soon"; write a duration above 0s, such as "90s"`,
	} {
		_, err := config.Load(config.Options{File: writeConfig(t, text), Getenv: environment(), GOOS: "linux", Dir: "/"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", text, err, want)
		}
	}
}
