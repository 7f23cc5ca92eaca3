package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/leader"
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "how to reach the API server")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, "greeter:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig string) error {
	cl, err := client.FromKubeconfig(kubeconfig, client.Options{})
	if err != nil {
		return err
	}
	factory := informer.NewFactory(cl, informer.Options{Logger: slog.Default()})
	c, err := newController(cl, factory)
	if err != nil {
		return err
	}
	elector, err := leader.New(cl, leader.Options{Namespace: "default", Name: "greeter", Logger: slog.Default()})
	if err != nil {
		return err
	}
	return controller.Run(ctx, controller.RunOptions{Factory: factory, Leader: elector}, c)
}
