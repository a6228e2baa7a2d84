"""TensorRT's timing caches: what each is valid for, as files and in the store."""
