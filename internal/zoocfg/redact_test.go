package zoocfg

import "testing"

func TestRedactedText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                           "",
		"# a=1\ntickTime=5":          "# a=1\ntickTime=5",
		"ssl.keyStore.password=s3":   "ssl.keyStore.password=********",
		"a=1\r\nx.Password = p\r\nb": "a=1\r\nx.Password=********\r\nb",
		"p\\u0061ssword: s\\\n  3\n\n# end\nc=2\n":                       "password=********\n\n# end\nc=2\n",
		"ssl.keyStore.passwordPath=/p\nk=password\n":                     "ssl.keyStore.passwordPath=/p\nk=password\n",
		"DigestAuthenticationProvider.superDigest super:x=\n password=a": "DigestAuthenticationProvider.superDigest=********\npassword=********",
		"# comment \\\npassword=a\nb=\\\n\npassword=c\n":                 "# comment \\\npassword=********\nb=\\\n\npassword=********\n",
	} {
		if got := (&Config{Text: text}).RedactedText(); got != want {
			t.Errorf("%q:\n%q, want\n%q", text, got, want)
		}
	}
}
