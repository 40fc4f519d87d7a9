package secret

import "sync"

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
