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

// hints are the rules that detect a credential by the text before it or by its prefix. The
// number of characters that a failed match can read is bounded.
var hints = sync.OnceValue(func() []rule {
	const words = letters + digits + "_-"
	list := []rule{
		newRule("random", []string{"secret", "token", "passw", "passphrase", "key", "credential"}, words+".",
			`(?i)((?:^|[^A-Za-z0-9])[A-Za-z0-9_.-]{0,40}(?:secret|token|passw(?:or)?d|passphrase|api[_-]?key|access[_-]?key|private[_-]?key|credential)[A-Za-z0-9_-]{0,40}["']?\s{0,20}(?:[:=]|=>)\s{0,20}["']?)([A-Za-z0-9+/_=.~!@#%^*-]{12,})`),
		newRule("", []string{"passw", "passphrase", "passcode"}, "",
			`(?i)((?:^|[^A-Za-z])(?:passw(?:or)?d|passphrase|passcode)["']?\s{0,20}(?:[:=]|=>)\s{0,20}["']?)([^\s"'<>,;&{}]{3,})`),
		newRule("", []string{"passw", "passphrase", "secret", "token", "api-key", "apikey"}, words+":<",
			`(?i)(<[a-z0-9_:-]{0,64}(?:passw(?:or)?d|passphrase|secret|token|api-?key)>)([^<]{3,})`),
		newRule("", []string{"sharedaccesskey", "accountkey", "sharedsecret"}, "",
			`(?i)((?:^|[;"'\s])(?:sharedaccesskey|accountkey|sharedsecret)\s{0,20}=\s{0,20})([^;"'\s]{8,})`),
		newRule("", []string{"pwd"}, "; \t", `(?i)(;\s{0,20}pwd\s{0,20}=\s{0,20})([^;"'\s]{3,})`),
		newRule("", []string{"cookie"}, letters+"-", `(?i)((?:^|[^A-Za-z-])(?:set-)?cookie["']?\s{0,20}:\s{0,20}["']?[^=\s;]{1,64}=)([^\r\n"']{6,})`),
		newRule("", []string{"authorization"}, "", `(?i)((?:^|[^A-Za-z])authorization["']?\s{0,20}[:=]\s{0,20}["']?)([^\s"'\[][^\r\n"']{7,})`),
		newRule("random", []string{"bearer"}, "", `(?i)((?:^|[^A-Za-z])bearer\s{1,20})([A-Za-z0-9+/_.~=-]{16,})`),
		newRule("", []string{"-u"}, letters+"-", `(?i)((?:^|\s)(?:-u|--user|--proxy-user)[ =]["']?[^\s:"']{1,64}:)([0-9]*[^\s"'/0-9][^\s"']+)`),
		newRule("random", []string{"?", "&"}, "", `(?i)([?&](?:sig|signature|x-amz-signature|x-goog-signature|auth|code|key)=)([A-Za-z0-9%+/_=.~-]{8,})`),
		newRule("", []string{"private-lines:"}, "", `(?i)(private-lines:)([\s\S]+)`),
		newRule("random", []string{"sk-proj-", "sk-svcacct-", "sk-admin-"}, "", `(?i)((?:^|[^A-Za-z0-9_-]))(sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,})`),
		newRule("random", []string{"SK"}, "", `((?:^|[^A-Za-z0-9_-]))(SK[0-9a-f]{32})`),
		newRule("random", []string{"dapi"}, "", `(?i)((?:^|[^A-Za-z0-9_-]))(dapi[0-9a-f]{32})`),
		newRule("", []string{"FwoGZXIvYXdz", "IQoJb3JpZ2lu"}, "", `()((?:FwoGZXIvYXdz|IQoJb3JpZ2lu)[A-Za-z0-9+/=]{20,})`),
		newRule("random", []string{"."}, words, `((?:^|[^A-Za-z0-9_-]))([MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40})`),
		newRule("", []string{"atatt3", "age-secret-key-"}, "", `(?i)((?:^|[^A-Za-z0-9_-]))((?:ATATT3|AGE-SECRET-KEY-1)[A-Za-z0-9_=-]{20,})`),
	}
	for i := range list {
		list[i].random, list[i].name, list[i].hint = list[i].name == "random", "named", true
	}
	return list
})

// assigned are the rules that detect a credential by the name before it and by its value.
// They ignore a value that can be a word, an identifier or a number, so that they may cause
// warnings. The hints redact a text before these rules do, because they hide more of a
// line.
var assigned = sync.OnceValue(func() []rule {
	const (
		sign  = `\\?["']?(?:\s{0,20}(?::=|=>|[:=])|\s{1,5}(?:is|was|ist|war|lautet):?)\s{0,20}\\?["'` + "`" + `]?)`
		value = `([A-Za-z0-9+/_=.~!@#%^*-]{12,})`
		word  = `([^\s"'<>,;(){}\\` + "`" + `]{6,100})`
	)
	list := []rule{
		newRule("assigned-secret", []string{"secret", "token", "key", "credential", "schlüssel"}, "",
			`(?i)((?:secret|token|key|credentials?|schlüssel)`+sign+value),
		newRule("password", []string{"passw", "passphrase", "passcode", "kennwort", "pw", "_pass", "-pass", ".pass"}, "",
			`(?i)((?:passw(?:or)?[dt]|passphrase|passcode|kennwort|pwd|pw|[_.-]pass)(?:\s(?:for|of|to|für|von|zu[mr]|de[rs])(?:\s[^\s:=]{1,30}){1,3}?)?`+sign+word),
		newRule("password", []string{"curl"}, "", `(?i)((?:^|[^A-Za-z])curl[^\n|;]{0,200}?\s(?:-u|--user|--proxy-user)[ =]?["']?[^\s:"'$]{1,64}:)`+word),
		newRule("session-cookie", []string{"cookie"}, "set-",
			`(?i)((?:^|[^A-Za-z-])(?:set-)?cookie\\?["']?\s{0,20}:\s{0,20}\\?["']?(?:[^\r\n"']{0,200};\s?)?[^=\s;]{0,40}(?:sess|sid|auth|token|jwt|login)[^=\s;]{0,40}=)([^;\s"'\\]{8,})`),
	}
	for i := range list {
		list[i].hint, list[i].certain = true, isMachineMade
		switch list[i].name {
		case "password":
			list[i].certain = isPassword
		case "session-cookie":
			list[i].certain = func(_, value string) bool { return isMachineMade("token", value) }
		}
	}
	return list
})

// Values that are never credentials, regardless of the name before them: words,
// identifiers, dates and versions; UUIDs, digests, paths and addresses; names of methods;
// names of other keys.
var (
	identifier = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:[A-Z]?[a-z]{2,}|[A-Z]{2,}|[0-9]{1,4}|[sSvVkKxX][0-9]{1,3}|[TZ._/:@=*!#%-])*$`)
	})
	publicValue = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|sha-?[0-9]+[:=-].*|[.~]{0,2}/[a-z0-9_.-]+/.*|[^@]+@[^@]+\.[a-z]+|.*://.*)$`)
	})
	method = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^(?:base(?:32|64)|sha-?[0-9]|md5|argon2|pbkdf2|[bs]crypt|utf-?8|oauth2|1password|aes-?[0-9]|[hre]s[0-9]{3}|ed25519|[0-9]+-|v[0-9]|[\w.]+=)`)
	})
	publicKey = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(?:public|cache|primary|foreign|sort|partition|routing|idempotency|object|s3|lookup|group|build|restore|range|hash|index|map|row|record|issue|project|unique|page|progress|cursor|sync|continuation|next)[ _-]?(?:key|token)$|(?:hash|digest|checksum|fingerprint) (?:of|for) (?:the |an? )?[a-z -]{3,30}$`)
	})
)

// secretName matches the names of generated credentials. The same names are also used for
// other values.
var secretName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i:secret|token|credentials?|(?:api|access|private|secret|master|signing|encryption|stripe|openai)[ _.-]?key|(?:api|zugangs|zugriffs|geheim)-?schlüssel)$|(?:^|[^A-Za-z0-9])[A-Z][A-Z0-9_]*_KEY$`)
})

// signOf matches what is between a name and its value.
var signOf = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:\s(?:is|was|ist|war|lautet))?[\s:=>"'\\` + "`" + `]*$`)
})

// isMachineMade reports whether a value can be a generated credential, and the text before
// it ends with the name of a credential.
func isMachineMade(before, value string) bool {
	if !strings.ContainsAny(value, digits) || !strings.ContainsAny(value, letters) || identifier().MatchString(value) || publicValue().MatchString(value) {
		return false
	}
	before = before[max(0, len(before)-maxLead):]
	name := before[:signOf().FindStringIndex(before)[0]]
	return secretName().MatchString(name) && !publicKey().MatchString(name)
}

// isPassword reports whether a value can be a password in prose: a word with a digit or a
// sign inside, which is not the name of a method.
func isPassword(_, value string) bool {
	value = strings.Trim(value, "*_!?.:[]")
	return len(value) >= 6 && strings.ContainsAny(value, letters) && strings.ContainsAny(value, digits+"!#$%^&*?+") &&
		!strings.ContainsAny(value, "()|") && !publicValue().MatchString(value) && !method().MatchString(value)
}

// passKey matches keys of passwords. The same keys are also used for other values.
var passKey = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?i:.*[_. -])?(?i:pw|pwd|pass|passcode|passwort|kennwort)$|(?:Passwort|Kennwort|Passcode)$`)
})

// isLikelyAssignment reports whether a key can be the name of a credential, and its value
// looks like a credential.
func isLikelyAssignment(key, value string) bool {
	return len(value) >= 12 && !pagePattern().MatchString(key) && isMachineMade(key, value) || passKey().MatchString(key) && isPassword("", value)
}
