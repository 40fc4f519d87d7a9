package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/pins"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

// request sends a request of 2026-07-28 with the capabilities, and returns the answer.
func (r *fixture) request(t *testing.T, user, capabilities, method, name, params string) string {
	t.Helper()
	header := map[string]string{"Mcp-Protocol-Version": modern, "Mcp-Method": method, "Mcp-Name": name}
	_, text := r.postAs(t, user, `{"jsonrpc":"2.0","id":2,"method":"`+method+`","params":{`+params+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":`+capabilities+`}}}`, header)
	return text
}

// requestSkill sends a request about a skill.
func (r *fixture) requestSkill(t *testing.T, user, method, uri string) string {
	t.Helper()
	return r.request(t, user, `{}`, method, "", `"uri":"`+uri+`",`)
}

// Each skill, with its files and directories, is found and read by a URI that leads to its own
// upstream, although two upstreams have the same skills, for upstreams of both versions.
func TestSkillsAreCarried(t *testing.T) {
	t.Parallel()
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{
		newEntry(t, "one", upstreamtest.Skills), newEntry(t, "two", upstreamtest.Skills, upstreamtest.Modern), newEntry(t, "plain"),
	}})
	list := r.request(t, "ann", `{}`, "skills/list", "", "")
	if strings.Count(list, `"frontmatter"`) != 4 || !strings.Contains(list, `"description":"To write.\u202e"`) ||
		!strings.Contains(list, `"ttlMs":0`) || !strings.Contains(list, `"cacheScope":"private"`) || !strings.Contains(list, `"resultType":"complete"`) {
		t.Errorf("the list is %s", list)
	}
	for _, uri := range skillURIs(t, list) {
		got := r.requestSkill(t, "ann", "skills/get", uri)
		if strings.Count(got, `"uri":"`+uri+`"`) != 2 || !strings.Contains(got, `"ttlMs":0`) {
			t.Errorf("the skill %s is %s", uri, got)
		}
		directory := strings.TrimSuffix(uri, "/SKILL.md")
		if got := r.requestSkill(t, "ann", "resources/directory/read", directory); !strings.Contains(got, `"uri":"`+uri+`","name":"SKILL.md"`) && !strings.Contains(got, `"name":"SKILL.md","uri":"`+uri+`"`) {
			t.Errorf("the directory %s is %s", directory, got)
		}
	}
	for _, method := range []string{"skills/get", "resources/directory/read"} {
		for _, uri := range []string{"skill://nobody/SKILL.md", "guideway://schemas/steps"} {
			if got := r.requestSkill(t, "ann", method, uri); !strings.Contains(got, `"code":-32602`) {
				t.Errorf("%s of %s returned %s", method, uri, got)
			}
		}
	}
}

// skillURIs returns the different URIs of skills in a list.
func skillURIs(t *testing.T, list string) []string {
	t.Helper()
	seen := map[string]bool{}
	var uris []string
	for _, part := range strings.Split(list, `"uri":"`)[1:] {
		uri, _, _ := strings.Cut(part, `"`)
		if !seen[uri] {
			seen[uri] = true
			uris = append(uris, uri)
		}
	}
	if len(uris) != 4 {
		t.Fatalf("the URIs are %v, want four different ones", uris)
	}
	return uris
}

// Without an upstream with skills that the client may use, the methods do not exist, and the
// upstream's skills stay secret.
func TestSkillsNeedAccess(t *testing.T) {
	t.Parallel()
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", upstreamtest.Skills), newEntry(t, "plain"), newEntry(t, "liar", upstreamtest.Liar)}})
	r.allow = map[string]auth.Allow{"narrow": {Upstreams: []string{"plain"}}}
	uri := skillURI(t, r.request(t, "ann", `{}`, "skills/list", "", ""))
	if got := r.request(t, "narrow", `{}`, "skills/list", "", ""); !strings.Contains(got, `"code":-32601`) {
		t.Errorf("the list of a client without access is %s", got)
	}
	for _, method := range []string{"skills/get", "resources/directory/read"} {
		if got := r.requestSkill(t, "narrow", method, uri); !strings.Contains(got, `"code":-32602`) || strings.Contains(got, "frontmatter") {
			t.Errorf("%s of a client without access returned %s", method, got)
		}
	}
}

// skillURI returns the first URI of a list of skills.
func skillURI(t *testing.T, list string) string {
	t.Helper()
	_, rest, found := strings.Cut(list, `"uri":"`)
	uri, _, _ := strings.Cut(rest, `"`)
	if !found {
		t.Fatalf("no skill in %s", list)
	}
	return uri
}

// The entries of skills are pinned with the digests of their files. A changed skill is neither
// listed nor returned until a person approves the change, and a skill that no list contains
// needs approval if everything does.
func TestChangedSkillNeedsApproval(t *testing.T) {
	t.Parallel()
	store := newPins(t, t.TempDir())
	open := func(mode string, pinMode pins.Mode) *fixture {
		e := newEntry(t, "one", mode)
		e.Pins = pinMode
		return newFixture(t, gateway.Options{Upstreams: []gateway.Entry{e}, Pins: store})
	}
	r := open(upstreamtest.Skills, pins.ModeFirstUse)
	list := r.request(t, "ann", `{}`, "skills/list", "", "")
	uri := skillURI(t, list)
	if strings.Count(list, `"frontmatter"`) != 2 || !strings.Contains(uri, "write") {
		t.Fatalf("the list is %s", list)
	}
	if got := r.requestSkill(t, "ann", "skills/get", strings.Replace(uri, "write", "unlisted", 1)); !strings.Contains(got, `"frontmatter"`) {
		t.Errorf("an unlisted skill is %s", got)
	}

	changed := open(upstreamtest.SkillsChanged, pins.ModeFirstUse)
	list = changed.request(t, "ann", `{}`, "skills/list", "", "")
	if strings.Count(list, `"frontmatter"`) != 1 || strings.Contains(list, "write") {
		t.Errorf("the list with a changed skill is %s", list)
	}
	if got := changed.requestSkill(t, "ann", "skills/get", uri); !strings.Contains(got, "waits for approval: changed since its approval") || strings.Contains(got, "frontmatter") {
		t.Errorf("the changed skill is %s", got)
	}
	waiting, err := pins.Review(store, changed.Known("one"), "one")
	if err != nil || len(waiting) != 1 || waiting[0].Tool != "skill:skill://team/write/SKILL.md" || !strings.Contains(waiting[0].Diff(), "sha256:bbb") {
		t.Fatalf("waiting: %+v %v", waiting, err)
	}
	if err := pins.Accept(store, "one", "ann", waiting); err != nil {
		t.Fatal(err)
	}
	changed.Reload()
	if got := changed.requestSkill(t, "ann", "skills/get", uri); !strings.Contains(got, `"frontmatter"`) {
		t.Errorf("the approved skill is %s", got)
	}
	strict := open(upstreamtest.SkillsChanged, pins.ModeApprove)
	strict.request(t, "ann", `{}`, "skills/list", "", "")
	if got := strict.requestSkill(t, "ann", "skills/get", strings.Replace(uri, "write", "unlisted", 1)); !strings.Contains(got, "waits for approval: new skill") {
		t.Errorf("an unlisted skill is %s although everything needs approval", got)
	}
}

// An upstream that declares skills in an invalid way, or does not implement them, keeps its
// tools, and clients get an error for its skills.
func TestLyingUpstreamKeepsItsTools(t *testing.T) {
	t.Parallel()
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "liar", upstreamtest.Liar)}})
	p := r.connectClient(t, clientSetup{user: "ann", version: legacy, extensions: []string{upstream.ExtensionSkills}})
	if got := p.callTool("liar__echo", args{"text": "hi"}); got != "hi" {
		t.Errorf("a tool returned %s", got)
	}
	if got := r.request(t, "ann", `{}`, "skills/list", "", ""); !strings.Contains(got, `"skills":[]`) {
		t.Errorf("the list is %s", got)
	}
	for method, code := range map[string]int{"skills/get": -32601, "resources/directory/read": -32602} {
		if got := r.requestSkill(t, "ann", method, "note://one"); !strings.Contains(got, fmt.Sprintf(`"code":%d`, code)) {
			t.Errorf("%s returned %s", method, got)
		}
	}
}
