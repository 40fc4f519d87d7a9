package secret

import (
	"regexp"
	"strings"
	"sync"
)

// hint detects a credential by the text before it or by its prefix. The first group of the
// pattern is kept, the second group is hidden. Hints have more false positives than rules.
// They are used to redact texts, where a false positive costs one word, but not for
// warnings.
type hint struct {
	// marks are lower-case strings, one of which must be present.
	marks   []string
	pattern func() *regexp.Regexp
	// random reports that the value must contain a digit.
	random bool
}

// hints are all hints; the pattern of a hint is compiled when one of its marks is first
// found.
var hints = sync.OnceValue(func() []hint {
	type shape struct {
		marks   []string
		pattern string
		random  bool
	}
	var list []hint
	for _, s := range []shape{
		{
			[]string{"secret", "token", "passw", "passphrase", "key", "credential"},
			`((?:^|[^A-Za-z0-9])[A-Za-z0-9_.-]*(?:secret|token|passw(?:or)?d|passphrase|api[_-]?key|access[_-]?key|private[_-]?key|credential)[A-Za-z0-9_-]*["']?\s*(?:[:=]|=>)\s*["']?)([A-Za-z0-9+/_=.~!@#%^*-]{12,})`,
			true,
		},
		{
			[]string{"passw", "passphrase", "passcode"},
			`((?:^|[^A-Za-z])(?:passw(?:or)?d|passphrase|passcode)["']?\s*(?:[:=]|=>)\s*["']?)([^\s"'<>,;&{}]{3,})`, false,
		},
		{[]string{"</"}, `(<[a-z0-9_:-]*(?:passw(?:or)?d|passphrase|secret|token|api-?key)>)([^<]{3,})`, false},
		{[]string{"key=", "pwd=", "secret="}, `((?:^|[;"'\s])(?:sharedaccesskey|accountkey|sharedsecret)\s*=\s*)([^;"'\s]{8,})`, false},
		{[]string{"pwd="}, `(;\s*pwd\s*=\s*)([^;"'\s]{3,})`, false},
		{[]string{"cookie"}, `((?:^|[^A-Za-z-])(?:set-)?cookie["']?\s*:\s*["']?[^=\s;]{1,64}=)([^\r\n"']{6,})`, false},
		{[]string{"authorization"}, `((?:^|[^A-Za-z])authorization["']?\s*[:=]\s*["']?)([^\s"'\[][^\r\n"']{7,})`, false},
		{[]string{"bearer "}, `((?:^|[^A-Za-z])bearer\s+)([A-Za-z0-9+/_.~=-]{16,})`, true},
		{[]string{"-u", "user"}, `((?:^|\s)(?:-u|--user|--proxy-user)[ =]["']?[^\s:"']{1,64}:)([0-9]*[^\s"'/0-9][^\s"']+)`, false},
		{[]string{"?", "&"}, `([?&](?:sig|signature|x-amz-signature|x-goog-signature|auth|code|key)=)([A-Za-z0-9%+/_=.~-]{8,})`, true},
		{[]string{"private-lines:"}, `(private-lines:)([\s\S]+)`, false},
		{[]string{"sk-proj-", "sk-svcacct-", "sk-admin-"}, `((?:^|[^A-Za-z0-9_-]))(sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,})`, true},
		{[]string{"sk"}, `((?:^|[^A-Za-z0-9_-]))(SK[0-9a-f]{32})`, true},
		{[]string{"dapi"}, `((?:^|[^A-Za-z0-9_-]))(dapi[0-9a-f]{32})`, true},
		{[]string{"fwogzxivyxdz", "iqojb3jpz2lu"}, `()((?:FwoGZXIvYXdz|IQoJb3JpZ2lu)[A-Za-z0-9+/=]{20,})`, false},
		{[]string{"."}, `((?:^|[^A-Za-z0-9_-]))([MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40})`, true},
		{[]string{"atatt3", "age-secret-key-"}, `((?:^|[^A-Za-z0-9_-]))((?:ATATT3|AGE-SECRET-KEY-1)[A-Za-z0-9_=-]{20,})`, false},
	} {
		flags := "(?i)"
		if strings.Contains(s.pattern, "SK[") || strings.Contains(s.pattern, "[MNO]") {
			flags = "" // these formats are case-sensitive
		}
		list = append(list, hint{s.marks, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(flags + s.pattern) }), s.random})
	}
	return list
})

// redactHints redacts the credentials that hints detect.
func redactHints(text string) (string, bool) {
	found := false
	small := strings.ToLower(text)
	for _, h := range hints() {
		there := false
		for _, mark := range h.marks {
			there = there || strings.Contains(small, mark)
		}
		if !there {
			continue
		}
		text = h.pattern().ReplaceAllStringFunc(text, func(match string) string {
			parts := h.pattern().FindStringSubmatch(match)
			if placeholder().MatchString(parts[2]) || strings.Contains(parts[2], "[redacted") || h.random && !strings.ContainsAny(parts[2], "0123456789") {
				return match
			}
			found = true
			return parts[1] + "[redacted: named]"
		})
	}
	return text, found
}
