package secret

import (
	"regexp"
	"strings"
	"sync"
)

// rule is the format of a credential.
type rule struct {
	name string
	// marks are strings, one of which is in every credential of that format. Searching for
	// them is cheaper than matching the pattern.
	marks []string
	// pattern is compiled when a mark is first found; most processes never find one.
	pattern func() *regexp.Regexp
}

// The boundaries of a credential: characters that cannot belong to a longer word.
const (
	before = `(?:^|[^A-Za-z0-9_-])`
	after  = `(?:$|[^A-Za-z0-9_-])`
)

// rules are the recognizable formats. All scanners share them.
var rules = sync.OnceValue(func() []rule {
	type shape struct {
		name    string
		marks   []string
		pattern string
	}
	var list []rule
	for _, s := range []shape{
		{"private-key", []string{"PRIVATE KEY"}, `-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----`},
		{"aws-access-key", []string{"AKIA", "ASIA"}, before + `A[KS]IA[A-Z2-7]{16}` + after},
		{"github-token", []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, before + `gh[pousr]_[A-Za-z0-9]{36,255}` + after},
		{"github-token", []string{"github_pat_"}, before + `github_pat_[A-Za-z0-9_]{22,255}` + after},
		{"gitlab-token", []string{"gl"}, before + `gl(?:pat|dt|ptt|rt|soat|ft|cbt|oas|agent)-[A-Za-z0-9_-]{20,60}`},
		{"slack-token", []string{"xox"}, before + `xox[abeoprs]-[A-Za-z0-9-]{10,250}`},
		{"slack-webhook", []string{"hooks.slack.com"}, `hooks\.slack\.com/(?:services|workflows)/T[A-Za-z0-9/_-]{20,}`},
		{"slack-token", []string{"xapp-"}, before + `xapp-[0-9]-[A-Za-z0-9-]{10,250}`},
		{"stripe-key", []string{"k_live_", "k_test_"}, before + `[rs]k_(?:live|test)_[A-Za-z0-9]{16,250}` + after},
		{"stripe-key", []string{"whsec_"}, before + `whsec_[A-Za-z0-9+/]{32,100}`},
		{"google-api-key", []string{"AIza"}, before + `AIza[A-Za-z0-9_-]{35}` + after},
		{"google-oauth", []string{"GOCSPX-", "ya29."}, before + `(?:GOCSPX-[A-Za-z0-9_-]{28}|ya29\.[A-Za-z0-9_-]{20,})`},
		{"anthropic-key", []string{"sk-ant-"}, before + `sk-ant-[A-Za-z0-9_-]{24,}`},
		{"openai-key", []string{"sk-"}, before + `sk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}T3BlbkFJ[A-Za-z0-9_-]{20,}`},
		{"openrouter-key", []string{"sk-or-"}, before + `sk-or-v[0-9]-[a-f0-9]{40,80}` + after},
		{"secret-key", []string{"sk-"}, before + `sk-[A-Za-z0-9]{32,100}` + after},
		{"groq-key", []string{"gsk_"}, before + `gsk_[A-Za-z0-9]{40,80}` + after},
		{"xai-key", []string{"xai-"}, before + `xai-[A-Za-z0-9]{60,100}` + after},
		{"replicate-token", []string{"r8_"}, before + `r8_[A-Za-z0-9]{37}` + after},
		{"huggingface-token", []string{"hf_"}, before + `hf_[A-Za-z]{30,40}` + after},
		{"npm-token", []string{"npm_"}, before + `npm_[A-Za-z0-9]{36}` + after},
		{"docker-token", []string{"dckr_"}, before + `dckr_[po]at_[A-Za-z0-9_-]{27,60}`},
		{"terraform-token", []string{".atlasv1."}, before + `[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,70}`},
		{"atlassian-token", []string{"ATATT3"}, before + `ATATT3[A-Za-z0-9_=-]{60,250}`},
		{"linear-key", []string{"lin_api_"}, before + `lin_api_[A-Za-z0-9]{40}` + after},
		{"shopify-token", []string{"shpat_", "shpca_", "shppa_", "shpss_"}, before + `shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}` + after},
		{"supabase-key", []string{"sbp_"}, before + `sbp_[a-f0-9]{40}` + after},
		{"pypi-token", []string{"pypi-"}, before + `pypi-AgE[A-Za-z0-9_-]{40,}`},
		{"sendgrid-key", []string{"SG."}, before + `SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}` + after},
		{"digitalocean-token", []string{"dop_v1_", "doo_v1_", "dor_v1_"}, before + `do[opr]_v1_[a-f0-9]{64}` + after},
		{"telegram-token", []string{":AA"}, before + `[0-9]{8,10}:AA[A-Za-z0-9_-]{33}` + after},
		{"azure-key", []string{"AccountKey="}, `AccountKey=[A-Za-z0-9+/]{86}==`},
		{"vault-token", []string{"hvs."}, before + `hvs\.[A-Za-z0-9_-]{24,}`},
		{"age-key", []string{"AGE-SECRET-KEY-"}, before + `AGE-SECRET-KEY-1[A-Z0-9]{58}` + after},
		{"json-web-token", []string{"eyJ"}, before + `eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,}`},
		{"json-web-token", []string{"eyJ"}, before + `eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`},
		{"url-password", []string{"://"}, `[a-z][a-z0-9+.-]{1,20}://[^\s/:@"'<>{}$]{0,60}:[^\s/:@"'<>{}$*]{3,100}@[A-Za-z0-9\[]`},
		{"authorization", []string{"earer ", "asic "}, `(?i)authorization["']?\s*[:=]\s*["']?(?:bearer|basic)\s+[A-Za-z0-9+/_.=-]{16,}`},
		{"guideway-secret", []string{"gdw", "gdn_"}, before + `gd(?:w(?:[a-z]{2,10}[0-9]?)?|n)_[A-Za-z0-9_-]{20,}`},
		{"password", []string{"assw", "PASSW"}, `(?i)(?:^|[^a-z])passw(?:or)?d["']?\s*[:=]\s*["']?[^\s"'<>${}*\[(]{8,}`},
	} {
		list = append(list, rule{s.name, s.marks, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(s.pattern) })})
	}
	return list
})

// keyPattern matches keys whose value is a credential.
var keyPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(?:.*[_.-])?(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?token|auth[_-]?token|client[_-]?secret|private[_-]?key)$|^[a-z]*(?:Password|ApiKey|AccessToken|AuthToken|ClientSecret|PrivateKey)$`)
})

// placeholder matches placeholders of credentials.
var placeholder = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(?:\W*|<.*>|\$\{?.*|%.*%|\{\{.*\}\}|\[.*\]|x+|\*+|.*(?:example|placeholder|redacted|changeme|your[_-]|todo|none|null|env[:.]|see ).*)$`)
})

// isAssignment reports whether a key names a credential and its value may be a credential:
// a single word of 8 to 4096 bytes that is not a placeholder.
func isAssignment(key, value string) bool {
	if len(value) < 8 || len(value) > 4096 || strings.ContainsAny(value, " \t\n") {
		return false
	}
	return keyPattern().MatchString(key) && !placeholder().MatchString(value)
}

// namePattern matches keys whose value must be hidden, regardless of its content. It matches more keys
// than keyPattern: hiding costs less than a false warning.
var namePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:^|[_.-])(?:pass(?:word|wd|phrase|code)?|pwd|pin|otp|totp|cvv|cvc|ssn|dsn|connection[_-]?string|credit[_-]?card(?:[_-]?number)?|card[_-]?number|secrets?|credentials?|authorization|auth|cookies?|set-cookie|token|bearer|session[_-]?id|api[_-]?keys?|apikey|(?:access|refresh|id|auth|client|private|secret|signing|encryption)[_-]?(?:token|key|secret))$|(?:Password|Passphrase|Secret|Token|ApiKey|APIKey|AccessKey|PrivateKey|Credentials?|ConnectionString|CreditCard|CardNumber|Passcode)$`)
})
