package secret

import (
	"regexp"
	"strings"
	"sync"
)

// rule is the format of a credential.
type rule struct {
	name string
	// marks are strings, one of which is in every credential of that format or before it. A
	// search for a mark is much cheaper than one for the pattern. They are in lower case if
	// the pattern ignores case.
	marks []string
	// lead contains the characters that a match can have before the mark, apart from a
	// boundary.
	lead string
	// pattern matches from the first character of the lead. Its first group is the text
	// before the credential, its second group the credential. It is compiled when a mark is
	// first found; most processes never find one.
	pattern func() *regexp.Regexp
	// foldsCase reports that the pattern ignores the case, bounded that it begins with a
	// boundary, and random that the credential must contain a digit.
	foldsCase, bounded, random bool
	// hint reports that the rule has more false positives than others. Hints redact texts,
	// where a false positive costs one word, but cause no warnings.
	hint bool
	// certain, if set, reports whether a match is a credential, by the text before it and its
	// value. Such a rule causes warnings.
	certain func(before, value string) bool
}

// newRule returns a rule of a pattern.
func newRule(name string, marks []string, lead, pattern string) rule {
	bare, fold := strings.CutPrefix(pattern, "(?i)")
	return rule{
		name: name, marks: marks, lead: lead, foldsCase: fold, bounded: strings.HasPrefix(bare, "((?:^|"),
		pattern: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\A(?:` + pattern + `)`) }),
	}
}

// Characters of leads.
const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits  = "0123456789"
	scheme  = "abcdefghijklmnopqrstuvwxyz0123456789+.-"
)

// The boundaries of a credential: characters that cannot belong to a longer word. They
// include the second group.
const (
	before = `((?:^|[^A-Za-z0-9_-]))(`
	after  = `)(?:$|[^A-Za-z0-9_-])`
)

// rules are the recognizable formats. All scanners share them.
var rules = sync.OnceValue(func() []rule {
	return []rule{
		newRule("private-key", []string{"-----BEGIN "}, "", `()(-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:[\s\S]*?-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----|[\s\S]*))`),
		newRule("aws-access-key", []string{"AKIA", "ASIA"}, "", before+`A[KS]IA[A-Z2-7]{16}`+after),
		newRule("github-token", []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, "", before+`gh[pousr]_[A-Za-z0-9]{36,255}`+after),
		newRule("github-token", []string{"github_pat_"}, "", before+`github_pat_[A-Za-z0-9_]{22,255}`+after),
		newRule("gitlab-token", []string{"gl"}, "", before+`gl(?:pat|dt|ptt|rt|soat|ft|cbt|oas|agent)-[A-Za-z0-9_-]{20,60})`),
		newRule("slack-token", []string{"xox"}, "", before+`xox[abeoprs]-[A-Za-z0-9-]{10,250})`),
		newRule("slack-webhook", []string{"hooks.slack.com"}, "", `()(hooks\.slack\.com/(?:services|workflows)/T[A-Za-z0-9/_-]{20,})`),
		newRule("slack-token", []string{"xapp-"}, "", before+`xapp-[0-9]-[A-Za-z0-9-]{10,250})`),
		newRule("stripe-key", []string{"k_live_", "k_test_"}, "", before+`[rs]k_(?:live|test)_[A-Za-z0-9]{16,250}`+after),
		newRule("stripe-key", []string{"whsec_"}, "", before+`whsec_[A-Za-z0-9+/]{32,100})`),
		newRule("google-api-key", []string{"AIza"}, "", before+`AIza[A-Za-z0-9_-]{35}`+after),
		newRule("google-oauth", []string{"GOCSPX-", "ya29."}, "", before+`(?:GOCSPX-[A-Za-z0-9_-]{28}|ya29\.[A-Za-z0-9_-]{20,}))`),
		newRule("anthropic-key", []string{"sk-ant-"}, "", before+`sk-ant-[A-Za-z0-9_-]{24,})`),
		newRule("openai-key", []string{"sk-"}, "", before+`sk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}T3BlbkFJ[A-Za-z0-9_-]{20,})`),
		newRule("openrouter-key", []string{"sk-or-"}, "", before+`sk-or-v[0-9]-[a-f0-9]{40,80}`+after),
		newRule("secret-key", []string{"sk-"}, "", before+`sk-[A-Za-z0-9]{32,100}`+after),
		newRule("groq-key", []string{"gsk_"}, "", before+`gsk_[A-Za-z0-9]{40,80}`+after),
		newRule("xai-key", []string{"xai-"}, "", before+`xai-[A-Za-z0-9]{60,100}`+after),
		newRule("replicate-token", []string{"r8_"}, "", before+`r8_[A-Za-z0-9]{37}`+after),
		newRule("huggingface-token", []string{"hf_"}, "", before+`hf_[A-Za-z]{30,40}`+after),
		newRule("npm-token", []string{"npm_"}, "", before+`npm_[A-Za-z0-9]{36}`+after),
		newRule("docker-token", []string{"dckr_"}, "", before+`dckr_[po]at_[A-Za-z0-9_-]{27,60})`),
		newRule("terraform-token", []string{".atlasv1."}, letters+digits, before+`[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,70})`),
		newRule("atlassian-token", []string{"ATATT3"}, "", before+`ATATT3[A-Za-z0-9_=-]{60,250})`),
		newRule("linear-key", []string{"lin_api_"}, "", before+`lin_api_[A-Za-z0-9]{40}`+after),
		newRule("shopify-token", []string{"shpat_", "shpca_", "shppa_", "shpss_"}, "", before+`shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}`+after),
		newRule("supabase-key", []string{"sbp_"}, "", before+`sbp_[a-f0-9]{40}`+after),
		newRule("pypi-token", []string{"pypi-"}, "", before+`pypi-AgE[A-Za-z0-9_-]{40,})`),
		newRule("sendgrid-key", []string{"SG."}, "", before+`SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}`+after),
		newRule("digitalocean-token", []string{"dop_v1_", "doo_v1_", "dor_v1_"}, "", before+`do[opr]_v1_[a-f0-9]{64}`+after),
		newRule("telegram-token", []string{":AA"}, digits, before+`[0-9]{8,10}:AA[A-Za-z0-9_-]{33}`+after),
		newRule("azure-key", []string{"AccountKey="}, "", `()(AccountKey=[A-Za-z0-9+/]{86}==)`),
		newRule("vault-token", []string{"hvs."}, "", before+`hvs\.[A-Za-z0-9_-]{24,})`),
		newRule("age-key", []string{"AGE-SECRET-KEY-"}, "", before+`AGE-SECRET-KEY-1[A-Z0-9]{58}`+after),
		newRule("json-web-token", []string{"eyJ"}, "", before+`eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,})`),
		newRule("json-web-token", []string{"eyJ"}, "", before+`eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,})`),
		newRule("url-password", []string{"://"}, scheme, `([a-z0-9+.-]{2,64}://[^\s/:@"'<>{}$]{0,60}:)([^\s/?#"'<>{}$*][^\s/?#"'<>{}*]{2,99})@[A-Za-z0-9\[]`),
		newRule("authorization", []string{"authorization"}, "", `(?i)(authorization["']?\s{0,20}[:=]\s{0,20}["']?(?:bearer|basic)\s{1,20})([A-Za-z0-9+/_.=-]{16,})`),
		newRule("guideway-secret", []string{"gdw", "gdn_"}, "", before+`gd(?:w(?:[a-z]{2,10}[0-9]?)?|n)_[A-Za-z0-9_-]{20,})`),
		newRule("password", []string{"passw"}, "", `(?i)((?:^|[^a-z])passw(?:or)?d["']?\s{0,20}[:=]\s{0,20}["']?)([^\s"'<>${}*\[(]{7,}[^\s"'<>${}*\[(,;])`),
	}
})

// keyPattern matches keys whose value is a credential.
var keyPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(?:.*[_.-])?(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?token|auth[_-]?token|client[_-]?secret|private[_-]?key)$|^[a-z]*(?:Password|ApiKey|AccessToken|AuthToken|ClientSecret|PrivateKey)$`)
})

// placeholder matches placeholders of credentials.
var placeholder = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(?:\W*|<.*>|\$\{?.*|%.*%|\{\{.*\}\}|\[.*\]|x+|\*+|.*(?:example|placeholder|redacted|changeme|your[_-]|env[:.]|see ).*|(?:.*[^a-z0-9])?(?:todo|none|null)(?:[^a-z0-9].*)?)$`)
})

// isAssignment reports whether a key names a credential and its value may be a credential:
// a single word of 8 to 4096 bytes that is not a placeholder.
func isAssignment(key, value string) bool {
	if len(value) < 8 || len(value) > 4096 || strings.ContainsAny(value, " \t\n") {
		return false
	}
	return (keyPattern().MatchString(key) || isLikelyAssignment(key, value)) && !placeholder().MatchString(value)
}

// pagePattern matches the keys of tokens that name a part of a list, which a client sends
// back.
var pagePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:next|page|progress|continuation|continue|sync|cursor)[_.-]?(?:page)?[_.-]?token$`)
})

// namePattern matches keys whose value must be hidden, regardless of its content. It matches more keys
// than keyPattern: hiding costs less than a false warning.
var namePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:^|[_.-])(?:pass(?:word|wd|phrase|code)?|pwd|pin|otp|totp|cvv|cvc|ssn|dsn|connection[_-]?string|credit[_-]?card(?:[_-]?number)?|card[_-]?number|secrets?|credentials?|authorization|auth|cookies?|set-cookie|token|bearer|session[_-]?id|api[_-]?keys?|apikey|(?:access|refresh|id|auth|client|private|secret|signing|encryption)[_-]?(?:token|key|secret))$|(?:Password|Passphrase|Secret|Token|ApiKey|APIKey|AccessKey|PrivateKey|Credentials?|ConnectionString|CreditCard|CardNumber|Passcode)$`)
})
