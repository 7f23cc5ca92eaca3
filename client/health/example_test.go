package health_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/health"
	"github.com/levelwire/levelwire/client/informer"
)

func Example() {
	ctx := context.Background() // that of the program
	c, err := client.New(&rest.Config{Host: "http://localhost:8080"}, client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	factory := informer.NewFactory(c, informer.Options{})
	handler := health.NewHandler(health.Options{
		// Live: health.Checks{"leader": health.Func(elector.Healthy)},
		Ready: health.Checks{
			"informers": health.Func(func() error { return factory.Healthy(5 * time.Minute) }),
			"shutdown":  health.Running(ctx),
			// "controller": health.Func(controller.Healthy),
		},
	})
	// http.ListenAndServe(":8081", handler) in a program.
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz?verbose", nil))
	fmt.Print(response.Body)
	// Output:
	// [+]informers ok
	// [+]shutdown ok
	// readyz check passed
}
