/** Gradients of resizing for the backend "tensorflow", with half-pixel centers too. @module */
import { tf } from "../../../deps.ts";
import type { OpAttribute } from "../binding/attributes.ts";
import { bool, FLOAT, ints, register } from "./kernel.ts";

/** Registers `ResizeBilinearGrad` and `ResizeNearestNeighborGrad`. */
export function registerResize(): void {
  register(
    tf.ResizeBilinearGrad,
    (backend, { dy, images }, attrs) =>
      backend.executeSingleOutput("ResizeBilinearGrad", opAttributes(attrs), [dy!, images!]),
  );
  register(tf.ResizeNearestNeighborGrad, (backend, { dy, images }, attrs) => {
    const size = ints(images!.shape.slice(1, 3));
    return backend.executeSingleOutput("ResizeNearestNeighborGrad", opAttributes(attrs), [dy!, size]);
  });
}

function opAttributes(
  { alignCorners, halfPixelCenters = false }: { alignCorners: boolean; halfPixelCenters?: boolean },
): OpAttribute[] {
  return [FLOAT, bool("align_corners", alignCorners), bool("half_pixel_centers", halfPixelCenters)];
}
