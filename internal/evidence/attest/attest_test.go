package attest_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"pgregory.net/rapid"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/evidence/attest"
)

var (
	commit     = strings.Repeat("c", 40)
	tree       = strings.Repeat("d", 40)
	otherTree  = strings.Repeat("e", 40)
	definition = "sha256:" + strings.Repeat("0", 64)
)

// newStatement returns a statement about a run with a claim, a refused attempt, a failed and
// a passed check and an approval.
func newStatement() *attest.Statement {
	at, exit := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), 0
	failed := attest.Check{
		Key: "/0", Type: "check", Name: "test", Decided: true, Definition: "sha256:1", Argv: []string{"go", "test"}, ExitCode: &exit, DurationMS: 3,
		Workspace: &attest.Workspace{Commit: strings.Repeat("b", 40), Tree: otherTree, WorkTree: otherTree, Dirty: 1},
	}
	passed := failed
	passed.Passed = true
	passed.Workspace = &attest.Workspace{Commit: strings.Repeat("b", 40), Tree: otherTree, WorkTree: tree, Dirty: 2}
	return attest.NewStatement(commit, tree, attest.Predicate{
		Guideway: "v1.0.0", AttestedAt: at,
		Run:      attest.Run{ID: "r_1", GoalHash: attest.HashText("fix it"), StartedAt: at, CompletedAt: at, Events: 9, Head: "00ff"},
		Workflow: attest.Workflow{ID: "coding-task", Version: "1.0.0", Definition: definition},
		Start:    &attest.Workspace{Commit: strings.Repeat("b", 40), Tree: otherTree},
		Steps: []attest.Step{
			{ID: "plan", Seq: 2, At: at, Label: attest.Claim, OutputHash: attest.HashText("a plan")},
			{ID: "reproduce", Seq: 4, At: at, Label: attest.Evidence, Checks: []attest.Check{failed}},
			{ID: "implement", Seq: 6, At: at, Label: attest.Evidence, Checks: []attest.Check{passed}},
		},
		Approvals: []attest.Approval{
			{Gate: "plan", Option: "revise", Seq: 3, At: at, By: "ann", Via: "terminal", Person: true},
			{Gate: "plan", Option: "confirm", Seq: 5, At: at, By: "ann", Via: "terminal", Person: true},
			{Gate: "scope", Option: "small", Seq: 7, At: at, By: "ann", Via: "agent"},
		},
		Refused: map[string]int{"criteria-failed": 1},
	})
}

func sign(t *testing.T, s *attest.Statement, key attest.PrivateKey) []byte {
	t.Helper()
	file, err := attest.Sign(s, key)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// signText signs any payload.
func signText(t *testing.T, kind, payload string, keys ...attest.PrivateKey) []byte {
	t.Helper()
	envelope := dsse.Envelope{PayloadType: kind, Payload: base64.StdEncoding.EncodeToString([]byte(payload))}
	for _, key := range keys {
		envelope.Signatures = append(envelope.Signatures, dsse.Signature{
			KeyID: key.Public().ID(), Sig: base64.StdEncoding.EncodeToString(attest.SignBytes(key, dsse.PAE(kind, []byte(payload)))),
		})
	}
	file, err := json.Marshal(envelope)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// payloadOf returns the payload of a file.
func payloadOf(t *testing.T, file []byte) string {
	t.Helper()
	var envelope dsse.Envelope
	if err := json.Unmarshal(file, &envelope); err != nil {
		t.Fatal(err)
	}
	payload, err := envelope.DecodeB64Payload()
	if err != nil {
		t.Fatal(err)
	}
	return string(payload)
}

// exchangePayload replaces the payload of a file and keeps the signature.
func exchangePayload(t *testing.T, file []byte, s *attest.Statement) []byte {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.StdEncoding.EncodeToString
	return bytes.Replace(file, []byte(encode([]byte(payloadOf(t, file)))), []byte(encode(text)), 1)
}

func reasonOf(err error) attest.Reason {
	var refusal *attest.Refusal
	if errors.As(err, &refusal) && guideway.ErrorCode(err) == guideway.CodeRefused {
		return refusal.Reason
	}
	return ""
}

func TestOpenReturnsWhatWasSigned(t *testing.T) {
	t.Parallel()
	key, other := attest.NewPrivateKey(), attest.NewPrivateKey()
	want := newStatement()
	file := sign(t, want, key)
	got, signedBy, err := attest.Open(file, []attest.PublicKey{other.Public(), key.Public(), key.Public()})
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	if !slices.Equal(signedBy, []string{key.Public().ID()}) {
		t.Errorf("signed by %v", signedBy)
	}
	if bytes.Contains(file, []byte("a plan")) || strings.Contains(payloadOf(t, file), "fix it") {
		t.Error("the file contains a text of the run")
	}
	// A member that the envelope's specification does not know is not signed, and ignored.
	more := bytes.Replace(file, []byte("{"), []byte(`{"note": 1, `), 1)
	if _, _, err := attest.Open(more, []attest.PublicKey{key.Public()}); err != nil {
		t.Errorf("an unknown member of the envelope: %v", err)
	}
	// One trusted signature is enough.
	both := signText(t, attest.PayloadType, payloadOf(t, file), other, key)
	if _, signedBy, err := attest.Open(both, []attest.PublicKey{key.Public()}); err != nil || len(signedBy) != 1 {
		t.Errorf("a second signature by another key: %v, %v", signedBy, err)
	}
}

// TestOpenRefuses changes a valid file, or signs another payload with the trusted key.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	key, other, third := attest.NewPrivateKey(), attest.NewPrivateKey(), attest.NewPrivateKey()
	file := sign(t, newStatement(), key)
	payload := payloadOf(t, file)
	// edited returns the file with a changed payload and the old signature.
	edited := func(change func(s *attest.Statement)) []byte {
		s := newStatement()
		change(s)
		return exchangePayload(t, file, s)
	}
	resigned := func(old, replacement string) []byte {
		if !strings.Contains(payload, old) {
			t.Fatalf("the payload does not contain %s", old)
		}
		return signText(t, attest.PayloadType, strings.Replace(payload, old, replacement, 1), key)
	}
	for name, c := range map[string]struct {
		file []byte
		want attest.Reason
	}{
		"edited output":            {edited(func(s *attest.Statement) { s.Predicate.Steps[0].OutputHash = attest.HashText("another plan") }), attest.ReasonSignature},
		"claim called evidence":    {edited(func(s *attest.Statement) { s.Predicate.Steps[0].Label = attest.Evidence }), attest.ReasonSignature},
		"failed check passes":      {edited(func(s *attest.Statement) { s.Predicate.Steps[1].Checks[0].Passed = true }), attest.ReasonSignature},
		"removed step":             {edited(func(s *attest.Statement) { s.Predicate.Steps = s.Predicate.Steps[1:] }), attest.ReasonSignature},
		"removed refusal":          {edited(func(s *attest.Statement) { s.Predicate.Refused = nil }), attest.ReasonSignature},
		"added approval":           {edited(func(s *attest.Statement) { s.Predicate.Approvals[2].Person = true }), attest.ReasonSignature},
		"another subject":          {edited(func(s *attest.Statement) { s.Subject[0].Digest["gitCommit"] = otherTree }), attest.ReasonSignature},
		"foreign key":              {sign(t, newStatement(), other), attest.ReasonKey},
		"several foreign keys":     {signText(t, attest.PayloadType, payload, other, third), attest.ReasonKey},
		"trusted id, foreign key":  {bytes.Replace(sign(t, newStatement(), other), []byte(other.Public().ID()), []byte(key.Public().ID()), 1), attest.ReasonSignature},
		"foreign id, trusted key":  {bytes.Replace(file, []byte(key.Public().ID()), []byte(other.Public().ID()), 1), attest.ReasonKey},
		"no signature":             {signText(t, attest.PayloadType, payload), attest.ReasonUnsigned},
		"signature is no base64":   {bytes.Replace(file, []byte(`"sig": "`), []byte(`"sig": "!`), 1), attest.ReasonSignature},
		"another payload type":     {signText(t, "text/plain", payload, key), attest.ReasonPayloadType},
		"changed payload type":     {bytes.Replace(file, []byte(attest.PayloadType), []byte("text/plain"), 1), attest.ReasonPayloadType},
		"another statement type":   {resigned(attest.StatementType, "https://in-toto.io/Statement/v9"), attest.ReasonStatementType},
		"another predicate type":   {resigned(attest.PredicateType, "https://slsa.dev/provenance/v1"), attest.ReasonPredicateType},
		"unknown member":           {resigned(`"guideway":`, `"except":"the tests","guideway":`), attest.ReasonMember},
		"unknown member of a step": {resigned(`"label":`, `"ignore":true,"label":`), attest.ReasonMember},
		"duplicate member":         {resigned(`"guideway":`, `"guideway":"v0","guideway":`), attest.ReasonDuplicate},
		"duplicate in a subject":   {resigned(`{"gitTree":`, `{"gitTree":"0","gitTree":`), attest.ReasonDuplicate},
		"duplicate in another case": {
			resigned(`"guideway":`, `"Guideway":"v0","guideway":`), attest.ReasonPayload,
		},
		"duplicate payload":   {bytes.Replace(file, []byte(`"payload":`), []byte(`"payload": "e30=", "payload":`), 1), attest.ReasonDuplicate},
		"payload, other case": {bytes.Replace(file, []byte(`"payload":`), []byte(`"Payload":`), 1), attest.ReasonSignature},
		"two values":          {append(slices.Clone(file), file...), attest.ReasonFile},
		"other base64":        {bytes.Replace(file, []byte(`"payload": "`), []byte(`"payload": "\n`), 1), attest.ReasonFile},
		"another encoding":    {resigned(`"steps":`, `"steps": `), attest.ReasonPayload},
		"wrong type":          {resigned(`"events":9`, `"events":"9"`), attest.ReasonPayload},
		"fraction":            {resigned(`"events":9`, `"events":9.0`), attest.ReasonPayload},
		"no commit":           {resigned(commit, "HEAD"), attest.ReasonPayload},
		"no subject":          {resigned(`"gitTree"`, `"sha1"`), attest.ReasonPayload},
		"label without check": {resigned(`"label":"claim"`, `"label":"evidence"`), attest.ReasonPayload},
		"steps out of order":  {resigned(`"seq":4`, `"seq":2`), attest.ReasonPayload},
		"more steps than events": {
			resigned(`"events":9`, `"events":5`), attest.ReasonPayload,
		},
		"empty statement": {signText(t, attest.PayloadType, "{}", key), attest.ReasonStatementType},
		"list":            {signText(t, attest.PayloadType, "[]", key), attest.ReasonFile},
		"no JSON":         {[]byte("a text"), attest.ReasonFile},
		"empty":           {nil, attest.ReasonTruncated},
		"truncated":       {file[:len(file)/2], attest.ReasonTruncated},
		"without the end": {bytes.TrimSpace(file)[:len(bytes.TrimSpace(file))-1], attest.ReasonTruncated},
		"huge":            {append(slices.Clone(file), bytes.Repeat([]byte(" "), attest.MaxFile)...), attest.ReasonTooLarge},
		"deep":            {[]byte(strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200)), attest.ReasonFile},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _, err := attest.Open(c.file, []attest.PublicKey{key.Public()})
			if got := reasonOf(err); got != c.want || s != nil {
				t.Errorf("got the reason %q and a statement %v: %v, want %q", got, s != nil, err, c.want)
			}
		})
	}
	if _, _, err := attest.Open(file, nil); reasonOf(err) != attest.ReasonKey {
		t.Errorf("without keys: %v", err)
	}
}

// TestEveryByteOfThePayloadCounts changes one byte of the payload of a valid file.
func TestEveryByteOfThePayloadCounts(t *testing.T) {
	t.Parallel()
	key := attest.NewPrivateKey()
	file := sign(t, newStatement(), key)
	const member = `"payload": "`
	from := bytes.Index(file, []byte(member)) + len(member)
	to := from + bytes.IndexByte(file[from:], '"')
	payload := []byte(payloadOf(t, file))
	rapid.Check(t, func(r *rapid.T) {
		changed := slices.Clone(file)
		i, b := rapid.IntRange(from, to-1).Draw(r, "at"), rapid.Byte().Draw(r, "byte")
		if changed[i] == b {
			return
		}
		changed[i] = b
		if _, _, err := attest.Open(changed, []attest.PublicKey{key.Public()}); reasonOf(err) == "" {
			r.Fatalf("byte %d of the base64 text changed to %q: %v", i-from, b, err)
		}
		text := slices.Clone(payload)
		j := rapid.IntRange(0, len(text)-1).Draw(r, "decoded")
		text[j] ^= 1 << rapid.IntRange(0, 7).Draw(r, "bit")
		changed = slices.Concat(file[:from], []byte(base64.StdEncoding.EncodeToString(text)), file[to:])
		if _, _, err := attest.Open(changed, []attest.PublicKey{key.Public()}); reasonOf(err) == "" {
			r.Fatalf("byte %d of the payload changed to %q: %v", j, text[j], err)
		}
	})
}

func TestCheck(t *testing.T) {
	t.Parallel()
	undefined := func(s *attest.Statement) {
		s.Predicate.Steps[2].Checks[0] = attest.Check{Key: "/0", Type: "check", Name: "test", Undefined: true}
		s.Predicate.Steps[2].Label = attest.Claim
		s.Predicate.Steps = slices.Delete(s.Predicate.Steps, 1, 2)
	}
	for name, c := range map[string]struct {
		change func(s *attest.Statement)
		need   attest.Requirements
		want   []attest.Reason
	}{
		"nothing":                    {},
		"all":                        {need: attest.Requirements{Commit: commit, Tree: tree, Workflow: "coding-task", Definition: definition, Approvals: []string{"plan", "plan=confirm"}, Evidence: []string{"implement", "test", "reproduce"}}},
		"another commit":             {need: attest.Requirements{Commit: otherTree}, want: []attest.Reason{attest.ReasonCommit}},
		"another tree":               {need: attest.Requirements{Tree: otherTree}, want: []attest.Reason{attest.ReasonTree}},
		"replay for another change":  {need: attest.Requirements{Commit: otherTree, Tree: otherTree}, want: []attest.Reason{attest.ReasonCommit, attest.ReasonTree}},
		"another workflow":           {need: attest.Requirements{Workflow: "research"}, want: []attest.Reason{attest.ReasonWorkflow}},
		"older definition":           {need: attest.Requirements{Definition: "sha256:1"}, want: []attest.Reason{attest.ReasonDefinition}},
		"missing approval":           {need: attest.Requirements{Approvals: []string{"release"}}, want: []attest.Reason{attest.ReasonApproval}},
		"approval of an agent":       {need: attest.Requirements{Approvals: []string{"scope"}}, want: []attest.Reason{attest.ReasonApproval}},
		"another option":             {need: attest.Requirements{Approvals: []string{"plan=revise"}}, want: []attest.Reason{attest.ReasonApproval}},
		"revised after the approval": {change: func(s *attest.Statement) { s.Predicate.Approvals[1].Option = "revise" }, need: attest.Requirements{Approvals: []string{"plan"}}, want: []attest.Reason{attest.ReasonApproval}},
		"claim of a step":            {need: attest.Requirements{Evidence: []string{"plan"}}, want: []attest.Reason{attest.ReasonClaim}},
		"undefined check":            {change: undefined, need: attest.Requirements{Evidence: []string{"test"}}, want: []attest.Reason{attest.ReasonClaim}},
		"unknown check":              {need: attest.Requirements{Evidence: []string{"lint"}}, want: []attest.Reason{attest.ReasonEvidence}},
		"failed check": {
			change: func(s *attest.Statement) { s.Predicate.Steps[2].Checks[0].Passed = false },
			need:   attest.Requirements{Evidence: []string{"test"}}, want: []attest.Reason{attest.ReasonEvidence},
		},
		"files changed after the check": {
			change: func(s *attest.Statement) { s.Predicate.Steps[2].Checks[0].Workspace.WorkTree = otherTree },
			need:   attest.Requirements{Evidence: []string{"test"}}, want: []attest.Reason{attest.ReasonStale},
		},
		"files not recorded": {
			change: func(s *attest.Statement) { s.Predicate.Steps[2].Checks[0].Workspace.WorkTree = "" },
			want:   []attest.Reason{attest.ReasonStale},
		},
		"no workspace": {
			change: func(s *attest.Statement) { s.Predicate.Steps[2].Checks[0].Workspace = nil },
			want:   []attest.Reason{attest.ReasonStale},
		},
		"all at once": {
			need: attest.Requirements{Commit: otherTree, Workflow: "x", Approvals: []string{"x"}, Evidence: []string{"x"}},
			want: []attest.Reason{attest.ReasonCommit, attest.ReasonWorkflow, attest.ReasonApproval, attest.ReasonEvidence},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStatement()
			if c.change != nil {
				c.change(s)
			}
			var got []attest.Reason
			for _, refusal := range s.Check(c.need) {
				got = append(got, refusal.Reason)
				if refusal.Fix == "" {
					t.Errorf("%s has no fix", refusal.Reason)
				}
			}
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestFixesOfClaims checks that the fix for a step without a check differs from the fix for
// an undefined check.
func TestFixesOfClaims(t *testing.T) {
	t.Parallel()
	s := newStatement()
	s.Predicate.Steps[2].Checks[0].Undefined = true
	for name, want := range map[string]string{"plan": "add a check to the criteria of the step", s.Predicate.Steps[2].Checks[0].Name: "define the check in"} {
		refusals := s.Check(attest.Requirements{Evidence: []string{name}})
		if last := len(refusals) - 1; last < 0 || !strings.HasPrefix(refusals[last].Fix, want) {
			t.Errorf("%s: %+v", name, refusals)
		}
	}
}

func TestIsFile(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		".guideway/attestations/a.json": true, ".guideway/attestations/a.sh": false, ".guideway/attestations/b/a.json": false,
		".guideway/attestations/../a.json": false, ".guideway/attestations": false, "x/.guideway/attestations/a.json": false,
	} {
		if got := attest.IsFile(name); got != want {
			t.Errorf("IsFile(%q) returned %v", name, got)
		}
	}
}

func TestSignRefusesContradictions(t *testing.T) {
	t.Parallel()
	s := newStatement()
	s.Subject[0].Digest["gitCommit"] = "main"
	if _, err := attest.Sign(s, attest.NewPrivateKey()); guideway.ErrorCode(err) != guideway.CodeInternal {
		t.Errorf("got %v", err)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	key, other := attest.NewPrivateKey(), attest.NewPrivateKey()
	again, ok := attest.ParsePrivateKey(key.PEM())
	if !ok || again.PEM() != key.PEM() || again.Public().ID() != key.Public().ID() || key.Public().ID() == other.Public().ID() {
		t.Error("a key changes in its PEM text, or two keys have one id")
	}
	keys, err := attest.ParsePublicKeys("keys", []byte("a comment\n"+key.Public().PEM()+other.Public().PEM()))
	if err != nil || len(keys) != 2 || keys[0].ID() != key.Public().ID() || keys[1].PEM() != other.Public().PEM() {
		t.Errorf("two keys are read as %d, %v", len(keys), err)
	}
	elliptic256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&elliptic256.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"empty": "", "text": "ssh-ed25519 AAAA", "private key": key.PEM(),
		"another algorithm": string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
		"damaged":           string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte("x")})),
	} {
		_, err := attest.ParsePublicKeys("FILE", []byte(text))
		if guideway.ErrorCode(err) != guideway.CodeInvalid || guideway.ErrorFix(err) == "" || strings.Contains(err.Error(), "MC4CAQ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{"", key.Public().PEM(), "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		if _, ok := attest.ParsePrivateKey(text); ok {
			t.Errorf("%q is read as a private key", text)
		}
	}
}
