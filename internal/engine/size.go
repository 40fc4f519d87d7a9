package engine

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// The limits of a context: for workflow_next in estimated bytes, as in WorkRail, for runs in
// bytes of its JSON.
const (
	maxContextSize  = 256 * 1024
	warnContextSize = maxContextSize * 8 / 10
)

// ContextSize estimates the bytes of a context as WorkRail does: two for each UTF-16 unit
// of a string or key, eight or more for a number, four for a boolean, a null and for each
// list or object.
func ContextSize(v any) int {
	switch x := v.(type) {
	case string:
		return 2 * jsontext.CountUTF16(x)
	case float64, int, int64:
		return 8
	case json.Number:
		return max(8, 2*len(x)) // json.Number is counted by its text
	case bool, nil:
		return 4
	case []any:
		n := 4
		for _, item := range x {
			n += ContextSize(item)
		}
		return n
	case map[string]any:
		n := 4
		for k, item := range x {
			n += 2*jsontext.CountUTF16(k) + ContextSize(item)
		}
		return n
	default:
		return 0
	}
}

// maxContextDepth limits the nesting of variables, because JSON decoders limit it, too.
const maxContextDepth = 128

// exceedsDepth reports whether lists and objects are nested more than most levels deep.
func exceedsDepth(v any, most int) bool {
	switch x := v.(type) {
	case []any:
		for _, item := range x {
			if most == 0 || exceedsDepth(item, most-1) {
				return true
			}
		}
	case map[string]any:
		for _, item := range x {
			if most == 0 || exceedsDepth(item, most-1) {
				return true
			}
		}
	}
	return false
}

// toKilobytes converts bytes to kilobytes, rounded as in WorkRail's messages.
func toKilobytes(n int) int { return int(math.Round(float64(n) / 1024)) }

func contextTooLarge(n int) string {
	return fmt.Sprintf("Context size (%dKB) exceeds maximum allowed size (%dKB)", toKilobytes(n), maxContextSize/1024)
}

func contextNearlyFull(n int) string {
	return fmt.Sprintf("Context size (%dKB) exceeds 80%% of maximum (%dKB)", toKilobytes(n), maxContextSize/1024)
}
