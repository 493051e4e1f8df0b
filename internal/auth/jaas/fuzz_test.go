package jaas

import "testing"

// FuzzJAAS checks that a section of any file returns its users or an error.
func FuzzJAAS(f *testing.F) {
	f.Add(text, "Server")
	f.Add(`Client { a.DigestLoginModule required username="u" password="p"; };`, "Client")
	f.Add("Client { /*", "Client")
	f.Add(`Client { a.DigestLoginModule r user_a="\"\\\101\4777\n" user_b="\`, "Client")
	f.Add("Client { a.DigestLoginModule r user_a=\"\\\n\"; };", "Client")
	f.Fuzz(func(t *testing.T, text, section string) {
		if users, err := Users(text, section); err == nil && len(users) == 0 {
			t.Fatal("a section without a user has no error")
		}
		_, _, _ = Login(text, section)
	})
}
