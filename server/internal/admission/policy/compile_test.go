package policy

import "testing"

// TestCompilationPanics: a policy whose compilation has panicked is compiled again by the
// next request, and decides nothing meanwhile.
func TestCompilationPanics(t *testing.T) {
	calls, want := 0, &compiled{}
	p := &policy{compile: func() *compiled {
		if calls++; calls == 1 {
			panic("the compiler is at fault")
		}
		return want
	}}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is lost")
			}
		}()
		p.expressions()
	}()
	for range 2 {
		if got := p.expressions(); got != want || calls != 2 {
			t.Errorf("got %v after %d compilations", got, calls)
		}
	}
}
