package spelling_test

import (
	"testing"

	"github.com/guideway-dev/guideway/internal/platform/spelling"
)

func TestClosest(t *testing.T) {
	t.Parallel()
	known := []string{"prompt", "agentRole", "runCondition", "id", "log_level"}
	tests := []struct{ text, want string }{
		{"promtp", "prompt"}, // adjacent letters swapped
		{"promt", "prompt"},
		{"Prompt", "prompt"},
		{"agent_role", "agentRole"},
		{"log-level", "log_level"},
		{"prompt", ""}, // a known word has no suggestion
		{"zzz", ""},
		{"", ""},
		{"di", ""}, // the word is too short
		{"something-else-that-is-far-longer-than-any-of-the-words", ""},
	}
	for _, tt := range tests {
		if got := spelling.Closest(tt.text, known); got != tt.want {
			t.Errorf("Closest(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}
