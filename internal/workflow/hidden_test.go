package workflow_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// TestHiddenCharactersAreReported checks that a hidden character in any text of a document
// that still loads is a diagnostic with the file, the line, the pointer and a fix.
func TestHiddenCharactersAreReported(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*full.json")
	if err != nil || len(files) < 5 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if found := hiddenIn(t, file, data); len(found) > 0 {
				t.Fatalf("the unchanged document: %v", found)
			}
			var root any
			if err := json.Unmarshal(data, &root); err != nil {
				t.Fatal(err)
			}
			reported := 0
			changeTexts(root, "", func(pointer string) {
				text, err := json.MarshalIndent(root, "", " ")
				if err != nil {
					t.Fatal(err)
				}
				found, loads := check(file, text)
				if !loads {
					return
				}
				if len(found) != 1 || found[0].Pointer != pointer || found[0].Line == 0 || found[0].File != file || found[0].Fix == "" || !strings.Contains(found[0].Message, "U+202E") {
					t.Errorf("%s: %v", pointer, found)
				}
				reported++
			})
			if reported == 0 {
				t.Error("no text was changed")
			}
		})
	}
}

// check returns the diagnostics about hidden characters of a document, and whether it loads.
func check(file string, data []byte) (found []guideway.Diagnostic, loads bool) {
	document, all := workflow.CheckAs(file, data, workflow.As{})
	for _, d := range all {
		if d.Code == shape.CodeHidden {
			found = append(found, d)
		}
	}
	return found, document != nil
}

func hiddenIn(t *testing.T, file string, data []byte) []guideway.Diagnostic {
	t.Helper()
	found, loads := check(file, data)
	if !loads {
		t.Fatalf("%s does not load", file)
	}
	return found
}

// changeTexts adds a hidden character to one text after the other, and calls do for each.
func changeTexts(v any, pointer string, do func(pointer string)) {
	each := func(at string, child any, set func(any)) {
		if text, ok := child.(string); ok {
			set(text + "\u202e")
			do(at)
			set(text)
			return
		}
		changeTexts(child, at, do)
	}
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	switch v := v.(type) {
	case map[string]any:
		for key, child := range v {
			each(pointer+"/"+escape.Replace(key), child, func(to any) { v[key] = to })
		}
	case []any:
		for i, child := range v {
			each(fmt.Sprint(pointer, "/", i), child, func(to any) { v[i] = to })
		}
	}
}

// TestHiddenCharactersInAPrompt checks which characters of a prompt are reported, and where.
func TestHiddenCharactersInAPrompt(t *testing.T) {
	t.Parallel()
	const flow = "id: flow\nname: Flow\ndescription: One step.\nversion: 1.0.0\nsteps:\n  - id: one\n    title: One\n    prompt: %s\n"
	for name, tt := range map[string]struct{ text, want string }{
		"bidi":                  {"a\u202eb", "U+202E,"},
		"bidi isolate":          {"a\u2066b", "U+2066,"},
		"zero width":            {"a\u200bb", "U+200B,"},
		"a joiner in ASCII":     {"a\u200db", "U+200D,"},
		"two joiners":           {"日\u200d\u200c本", "U+200D,"},
		"control":               {"a\x1b[2Jb", "U+001B,"},
		"C1 control":            {"a\u009bb", "U+009B,"},
		"lone carriage return":  {"a\rb", "U+000D,"},
		"line separator":        {"a\u2028b", "U+2028,"},
		"paragraph separator":   {"a\u2029b", "U+2029,"},
		"tag":                   {"a\U000E0041b", "U+E0041,"},
		"a selector in ASCII":   {"a\ufe0fb", "U+FE0F,"},
		"two selectors":         {"⚠\ufe0f\ufe0f", "U+FE0F,"},
		"a reserved character":  {"a\U000E0FFFb", "U+E0FFF,"},
		"in a later line":       {"one\r\ntwo\nthr\u200bee", "U+200B on line 3,"},
		"lines":                 {"one\r\ntwo\n\tthree", ""},
		"other languages":       {"für 日本 👍️", ""},
		"letters with joiners":  {"نمی\u200cخواهم", ""},
		"an emoji with joiners": {"👩\u200d💻 ❤\ufe0f\u200d🔥", ""},
		"emoji with selectors":  {"⚠\ufe0f 1\ufe0f\u20e3", ""},
		"Hindi with joiners":    {"क्\u200dष", ""},
		"Hangul":                {"한국어 ᄒ\u1161\u11ab", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := hiddenIn(t, "flow.yaml", fmt.Appendf(nil, flow, strconv.QuoteToASCII(tt.text)))
			if tt.want == "" {
				if len(found) > 0 {
					t.Errorf("reported: %v", found)
				}
				return
			}
			if len(found) != 1 || found[0].Line != 8 || found[0].Pointer != "/steps/0/prompt" || !strings.Contains(found[0].Message, tt.want) {
				t.Errorf("got %v, want %s", found, tt.want)
			}
		})
	}
}

// TestHiddenCharactersInRoles checks that a hidden character is found in the name of a role
// and in its system message.
func TestHiddenCharactersInRoles(t *testing.T) {
	t.Parallel()
	const roles = `{"wor%sker": {"systemMessage": "Wor%sk."}}`
	as := workflow.As{Dialect: guideway.DialectMachines, Kind: "roles"}
	for _, at := range []struct{ name, message, pointer string }{{"\u200b", "", "/wor\u200bker"}, {"", "\u200b", "/worker/systemMessage"}} {
		document, found := workflow.CheckAs("roles.json", fmt.Appendf(nil, roles, at.name, at.message), as)
		if document == nil || len(found) != 1 || found[0].Code != shape.CodeHidden || found[0].Pointer != at.pointer || found[0].Line != 1 {
			t.Errorf("%s: %v", at.pointer, found)
		}
	}
}

// TestHiddenCharactersInScripts checks that no character is exempt in the script of a hook
// graph or of a module, because an identifier may contain a selector or a joiner.
func TestHiddenCharactersInScripts(t *testing.T) {
	t.Parallel()
	const (
		graph  = "id: own\nname: Own\nworkflowType: tools/call\nnodes:\n  - { id: start, type: start }\n  - { id: h, type: hook, data: { hook: { script: %s } } }\n  - { id: call, type: mcp-call }\n  - { id: end, type: end }\nedges: [{ source: start, target: h }, { source: h, target: call }, { source: call, target: end }]\n"
		module = "id: own\nname: Own\nscript: %s\n"
	)
	for _, char := range []string{"\ufe0f", "\ufe0e", "\u200d", "\u200c", "\u180b", "\u17b4", "\U000E0FFF"} {
		script := strconv.QuoteToASCII("let путь = 1; let путь" + char + "ь = 2")
		for text, pointer := range map[string]string{graph: "/nodes/1/data/hook/script", module: "/script"} {
			as := workflow.As{Dialect: guideway.DialectHooks}
			if text == module {
				as.Kind = "module"
			}
			document, all := workflow.CheckAs("own.yaml", fmt.Appendf(nil, text, script), as)
			want := fmt.Sprintf("U+%04X", []rune(char)[0])
			if document == nil || len(all) != 1 || all[0].Code != shape.CodeHidden || all[0].Pointer != pointer || !strings.Contains(all[0].Message, want) {
				t.Errorf("%s at %s: %v", want, pointer, all)
			}
		}
	}
}
